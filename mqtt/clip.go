package mqtt

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
)

// longestPacket is what is read of a packet at most, enough to refuse it: any
// topic whole, for paho ends the connection over half a topic, and more of the
// payload than any message has. paho would make room for whatever length a packet
// says it has, up to 256 MB, which a broker may let through from anybody who
// commands.
const longestPacket = 1<<16 + maxMessage + 1<<10

// clip is a connection whose incoming packets are cut to longestPacket. Cut, a
// message has the start of its payload, which is too long for any message.
type clip struct {
	net.Conn
	from *bufio.Reader
	head []byte // of the packet, to be read before
	body int    // bytes of it to be read
	rest int64  // and those to be left out
}

func newClip(conn net.Conn) net.Conn { return &clip{Conn: conn, from: bufio.NewReader(conn)} }

// Read gives what the packets are made of, cut.
func (c *clip) Read(b []byte) (int, error) {
	if len(c.head) == 0 && c.body == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	if len(c.head) > 0 {
		n := copy(b, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	n, err := c.from.Read(b[:min(len(b), c.body)])
	c.body -= n
	return n, err
}

// next leaves out what is left of a packet and begins the one that follows: a
// byte that says its kind, and how many bytes follow (MQTT 3.1.1, 2.2).
func (c *clip) next() error {
	if n, err := io.CopyN(io.Discard, c.from, c.rest); err != nil {
		c.rest -= n
		return err
	}
	c.rest = 0
	kind, err := c.from.ReadByte()
	if err != nil {
		return err
	}
	length, err := binary.ReadUvarint(c.from) // the same form, of which MQTT allows four bytes
	if err != nil {
		return err
	}
	c.body = int(min(length, longestPacket))
	c.rest = int64(min(length, 1<<28)) - int64(c.body)
	c.head = binary.AppendUvarint([]byte{kind}, uint64(c.body))
	return nil
}
