package mqtt

import (
	"bytes"
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// bytesConn is a connection of which only reading is asked.
type bytesConn struct {
	net.Conn
	r interface{ Read([]byte) (int, error) }
}

func (c bytesConn) Read(b []byte) (int, error) { return c.r.Read(b) }

// TestClip: packets come through as they were, however the line cuts them, but
// long ones only up to the bound.
func TestClip(t *testing.T) {
	sizes := []int{0, 1, 100, 127, 128, 8192, longestPacket - 20, longestPacket, 200_000, 3_000_000, 5}
	topic := strings.Repeat("t", 1<<16-1)
	var line bytes.Buffer
	for i, n := range sizes {
		p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
		p.TopicName, p.Qos, p.MessageID, p.Payload = topic, 1, uint16(i+1), []byte(strings.Repeat("x", n))
		if err := p.Write(&line); err != nil {
			t.Fatal(err)
		}
		if err := packets.NewControlPacket(packets.Pingresp).Write(&line); err != nil {
			t.Fatal(err)
		}
	}
	whole := line.Bytes()
	for name, conn := range map[string]net.Conn{
		"at once":     bytesConn{r: bytes.NewReader(whole)},
		"in halves":   bytesConn{r: iotest.HalfReader(bytes.NewReader(whole))},
		"with an EOF": bytesConn{r: iotest.DataErrReader(bytes.NewReader(whole))},
	} {
		from := newClip(conn)
		for i, n := range sizes {
			read, err := packets.ReadPacket(from)
			if err != nil {
				t.Fatalf("%s: packet %d: %v", name, i, err)
			}
			p := read.(*packets.PublishPacket)
			if want := min(n, longestPacket-4-len(topic)); len(p.Payload) != want || p.MessageID != uint16(i+1) || p.TopicName != topic {
				t.Errorf("%s: packet %d: %d bytes on a topic of %d, want %d", name, i, len(p.Payload), len(p.TopicName), want)
			}
			if ping, err := packets.ReadPacket(from); err != nil || ping.(*packets.PingrespPacket) == nil {
				t.Fatalf("%s: after packet %d: %v", name, i, err)
			}
		}
		if _, err := packets.ReadPacket(from); err == nil {
			t.Errorf("%s: more than was sent", name)
		}
	}
	endless := binary.AppendUvarint([]byte{0x30}, 1<<63)
	if _, err := packets.ReadPacket(newClip(bytesConn{r: bytes.NewReader(endless)})); err == nil {
		t.Error("a packet without its bytes")
	}
}
