package mqtt

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
	mochi "github.com/mochi-mqtt/server/v2"
	mochipackets "github.com/mochi-mqtt/server/v2/packets"
)

// people are the users of these tests.
var people = []User{{"board-1", Board}, {"cctv", Surveillance}, {"fred", Floor}, {"anna", Pit}, {"tom", Tech}}

func passwordOf(name string) string { return "geheim: " + name + "$ä" }

// passwordFile is one by the real mosquitto_passwd.
func passwordFile(t *testing.T, names ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "passwd")
	for i, name := range names {
		args := []string{"-b", path, name, passwordOf(name)}
		if i == 0 {
			args = slices.Insert(args, 0, "-c")
		}
		if out, err := exec.Command("mosquitto_passwd", args...).CombinedOutput(); err != nil {
			t.Fatalf("mosquitto_passwd: %v: %s", err, out)
		}
	}
	return path
}

// guarded is a broker that asks who one is.
type guarded struct {
	t             *testing.T
	addr, own     string // of everybody, of the table
	tablePassword string
	embedded      bool
	log           *lines // of the embedded one
}

// guardedMosquitto has the shipped file and what its comments say to add.
func guardedMosquitto(t *testing.T) *guarded {
	names := []string{desk, "observer"}
	shipped, err := os.ReadFile("mosquitto.acl")
	if err != nil {
		t.Fatal(err)
	}
	acl := string(shipped) + "user observer\ntopic readwrite #\ntopic readwrite $SYS/#\n"
	for _, u := range people {
		names = append(names, u.Name)
		acl += aclBlock(t, string(shipped), u)
	}
	path := filepath.Join(t.TempDir(), "acl")
	if err := os.WriteFile(path, []byte(acl), 0o600); err != nil {
		t.Fatal(err)
	}
	m := startMosquitto(t, "allow_anonymous false", "set_tcp_nodelay true", "password_file "+passwordFile(t, names...), "acl_file "+path)
	return &guarded{t: t, addr: m.addr, own: m.addr, tablePassword: passwordOf(desk)}
}

// aclBlock is the shipped file's example for a role with another name.
func aclBlock(t *testing.T, shipped string, u User) string {
	t.Helper()
	example := map[Role]string{Board: "board-1", Surveillance: "cctv", Floor: "anna", Pit: "anna", Tech: "anna"}[u.Role]
	_, block, found := strings.Cut(shipped, "\n#user "+example+"\n")
	if !found {
		t.Fatalf("no example for %s", example)
	}
	acl := "user " + u.Name + "\n"
	for line := range strings.Lines(block) {
		topic, ok := strings.CutPrefix(line, "#topic ")
		if !ok {
			break
		}
		acl += "topic " + strings.ReplaceAll(topic, "/"+example, "/"+u.Name)
	}
	return acl
}

func guardedBroker(t *testing.T) *guarded {
	g := &guarded{t: t, embedded: true, log: &lines{}}
	names := []string{}
	for _, u := range people {
		names = append(names, u.Name)
	}
	b, err := OpenBroker(BrokerOptions{
		TCP: "127.0.0.1:0", WebSocket: "127.0.0.1:0", Users: people, PasswordFile: passwordFile(t, names...),
		Site: site, Table: desk, Log: slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := b.server.AddHook(new(observing), nil); err != nil {
		t.Fatal(err)
	}
	g.addr, g.own, g.tablePassword = b.TCP, strings.TrimPrefix(b.Server, "mqtt://"), b.Password
	return g
}

// observing lets the observer of the tests do everything at the embedded broker.
type observing struct{ mochi.HookBase }

func (*observing) ID() string              { return "observing" }
func (*observing) Provides(what byte) bool { return (*admission)(nil).Provides(what) }
func (*observing) OnConnectAuthenticate(_ *mochi.Client, pk mochipackets.Packet) bool {
	return string(pk.Connect.Username) == "observer"
}
func (*observing) OnACLCheck(cl *mochi.Client, _ string, _ bool) bool {
	return string(cl.Properties.Username) == "observer"
}

func guardedBrokers(t *testing.T, test func(t *testing.T, g *guarded)) {
	t.Run("mosquitto", func(t *testing.T) { test(t, guardedMosquitto(t)) })
	t.Run("embedded", func(t *testing.T) { test(t, guardedBroker(t)) })
}

// wire is a client that waits for each answer.
type wire struct {
	t    *testing.T
	conn net.Conn
	code byte // of CONNACK
	last uint16
	got  []*packets.PublishPacket
}

// connectAs logs in. What will changes of CONNECT is optional.
func connectAs(t *testing.T, addr, user, password string, change func(*packets.ConnectPacket)) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	c := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	c.ProtocolName, c.ProtocolVersion, c.CleanSession, c.ClientIdentifier = "MQTT", 4, true, user
	if user != "" {
		c.UsernameFlag, c.PasswordFlag, c.Username, c.Password = true, true, user, []byte(password)
	}
	if change != nil {
		change(c)
	}
	w := &wire{t: t, conn: conn}
	if err := c.Write(conn); err != nil {
		t.Fatal(err)
	}
	answer, err := packets.ReadPacket(conn)
	if err != nil {
		t.Fatalf("%s: %v", user, err)
	}
	w.code = answer.(*packets.ConnackPacket).ReturnCode
	return w
}

// as connects a user, or the table.
func (g *guarded) as(u User) *wire {
	g.t.Helper()
	addr, password := g.addr, passwordOf(u.Name)
	if u.Role == itself {
		addr, password = g.own, g.tablePassword
	}
	w := connectAs(g.t, addr, u.Name, password, nil)
	if w.code != 0 {
		g.t.Fatalf("%s is refused with %d", u.Name, w.code)
	}
	return w
}

// until reads up to a packet and says whether it came before the end.
func (w *wire) until(last func(packets.ControlPacket) bool) bool {
	w.t.Helper()
	w.conn.SetDeadline(time.Now().Add(patience))
	for {
		packet, err := packets.ReadPacket(w.conn)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			w.t.Fatalf("waited %v in vain", patience)
		}
		if err != nil {
			return false
		}
		if p, ok := packet.(*packets.PublishPacket); ok {
			w.got = append(w.got, p)
		}
		if last(packet) {
			return true
		}
	}
}

// publish returns when the broker has dealt with the message, whatever it made
// of it; false when it has closed the connection.
func (w *wire) publish(topic, payload string, qos byte, retain bool) bool {
	w.t.Helper()
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	w.last++
	p.TopicName, p.Payload, p.Qos, p.Retain, p.MessageID = topic, []byte(payload), qos, retain, w.last
	p.Write(w.conn) // it may be closed
	packets.NewControlPacket(packets.Pingreq).Write(w.conn)
	return w.until(func(p packets.ControlPacket) bool { _, ok := p.(*packets.PingrespPacket); return ok })
}

// subscribe returns when what is retained is on its way.
func (w *wire) subscribe(filter string) (granted bool) {
	w.t.Helper()
	p := packets.NewControlPacket(packets.Subscribe).(*packets.SubscribePacket)
	w.last++
	p.MessageID, p.Topics, p.Qoss = w.last, []string{filter}, []byte{0}
	p.Write(w.conn)
	packets.NewControlPacket(packets.Pingreq).Write(w.conn)
	if !w.until(func(p packets.ControlPacket) bool {
		if a, ok := p.(*packets.SubackPacket); ok {
			granted = a.ReturnCodes[0] == 0
		}
		_, ok := p.(*packets.PingrespPacket)
		return ok
	}) {
		w.t.Fatalf("subscription of %s: connection closed", filter)
	}
	return granted
}

func (w *wire) unsubscribe(filter string) {
	w.t.Helper()
	p := packets.NewControlPacket(packets.Unsubscribe).(*packets.UnsubscribePacket)
	w.last++
	p.MessageID, p.Topics = w.last, []string{filter}
	p.Write(w.conn)
	if !w.until(func(p packets.ControlPacket) bool { _, ok := p.(*packets.UnsubackPacket); return ok }) {
		w.t.Fatalf("end of subscription of %s: connection closed", filter)
	}
}

// upTo waits for a message and gives those before it.
func (w *wire) upTo(payload string) []*packets.PublishPacket {
	w.t.Helper()
	i := w.awaits(func(m *packets.PublishPacket) bool { return string(m.Payload) == payload })
	before := w.got[:i]
	w.got = w.got[i+1:]
	return before
}

// awaits gives the place in got of a message that is there or comes.
func (w *wire) awaits(sought func(*packets.PublishPacket) bool) int {
	w.t.Helper()
	if !slices.ContainsFunc(w.got, sought) && !w.until(func(p packets.ControlPacket) bool {
		m, ok := p.(*packets.PublishPacket)
		return ok && sought(m)
	}) {
		w.t.Fatal("connection closed before the message came")
	}
	return slices.IndexFunc(w.got, sought)
}

var everybody = append([]User{{desk, itself}}, people...)

// Whatever a user publishes, of whatever QoS, an observer of the whole broker
// receives if the user has the right, and never otherwise; nor is it kept.
func TestAccessToPublish(t *testing.T) {
	guardedBrokers(t, func(t *testing.T, g *guarded) {
		observer := g.as(User{Name: "observer"})
		observer.subscribe("#")
		observer.subscribe("$SYS/#")
		n, tried := 0, 0
		for _, u := range everybody {
			w := g.as(u)
			try := func(topic string, want bool) {
				t.Helper()
				for qos := range byte(2) {
					n++
					body, mark := fmt.Sprint(u.Name, " ", n), fmt.Sprint("mark ", n)
					if !w.publish(topic, body, qos, qos == 1) {
						w = g.as(u) // the embedded broker ends the connection, which 3.1.1 leaves to it
					}
					observer.publish("mark", mark, 0, false)
					got := slices.ContainsFunc(observer.upTo(mark), func(m *packets.PublishPacket) bool { return string(m.Payload) == body })
					if got != want {
						t.Errorf("%s (%v) publishes on %s with QoS %d: arrived %v, want %v", u.Name, u.Role, topic, qos, got, want)
					}
					tried++
				}
			}
			mine, other := Topic(site, desk, ""), Topic(site, "table-2", "")
			for _, topic := range topicsOf(site, desk, u.Name) {
				try(topic, has(allowed[u.Role].write, mine, topic, u.Name))
			}
			// A site's broker has other tables, to which people may speak too.
			for _, topic := range topicsOf(site, "table-2", u.Name) {
				try(topic, !g.embedded && u.Role != itself && has(allowed[u.Role].write, other, topic, u.Name))
			}
			rest := append(topicsOf("away", desk, u.Name), elsewhere...)
			if u.Role != itself {
				rest = append(rest, topicsOf(site, u.Name, u.Name)...) // as if it were a table
			}
			for _, topic := range rest {
				try(topic, false)
			}
		}
		late := g.as(User{Name: "observer"})
		late.subscribe("#")
		late.publish("mark", "end", 0, false)
		for _, m := range late.upTo("end") {
			name, _, _ := strings.Cut(string(m.Payload), " ")
			i := slices.IndexFunc(everybody, func(u User) bool { return u.Name == name })
			table := strings.Split(m.TopicName, "/")[3]
			if i < 0 || !has(allowed[everybody[i].Role].write, Topic(site, table, ""), m.TopicName, name) {
				t.Errorf("kept on %s: %s", m.TopicName, m.Payload)
			}
		}
		t.Logf("%d publications tried", tried)
	})
}

// Whatever a user subscribes, he receives what is there and what comes if he
// has the right, and never otherwise.
func TestAccessToSubscribe(t *testing.T) {
	guardedBrokers(t, func(t *testing.T, g *guarded) {
		observer := g.as(User{Name: "observer"})
		for _, u := range everybody {
			mine, tried := Topic(site, desk, ""), 0
			// Where the user certainly may read, so that what is missing before it is
			// not under way.
			sign := Topic(site, desk, "status")
			w := g.as(u)
			try := func(topic string, want bool) {
				t.Helper()
				tried++
				observer.publish(topic, "old", 0, true)
				granted := w.subscribe(topic)
				if topic != sign {
					w.subscribe(sign)
				}
				observer.publish(topic, "new", 0, false)
				observer.publish(sign, "sign", 0, false)
				got := map[string]bool{}
				for _, m := range w.upTo("sign") {
					if m.TopicName != topic {
						t.Errorf("%s on %s, want %s", m.Payload, m.TopicName, topic)
					}
					got[string(m.Payload)] = true
				}
				if got["old"] != want || got["new"] != want || want && !granted || g.embedded && granted != want {
					t.Errorf("%s (%v) subscribes %s: granted %v, received %v; want %v", u.Name, u.Role, topic, granted, got, want)
				}
				w.unsubscribe(topic)
				w.unsubscribe(sign)
				observer.publish(topic, "", 0, true)
			}
			for _, topic := range topicsOf(site, desk, u.Name) {
				try(topic, has(allowed[u.Role].read, mine, topic, u.Name))
			}
			for _, topic := range topicsOf(site, "table-2", u.Name) {
				try(topic, u.Role != itself && has(allowed[u.Role].read, Topic(site, "table-2", ""), topic, u.Name))
			}
			for _, topic := range topicsOf("away", desk, u.Name) { // where the embedded broker lets nobody write
				try(topic, g.embedded && u.Role != itself && has(allowed[u.Role].read, Topic("away", desk, ""), topic, u.Name))
			}
			for _, topic := range elsewhere {
				if !strings.HasPrefix(topic, "$") {
					try(topic, false)
				}
			}
			system := "$SYS/broker/version" // which both brokers keep
			for _, filter := range []string{system, "$SYS/#", "$SYS/broker/+"} {
				w.subscribe(filter)
				w.subscribe(sign)
				observer.publish(sign, "sign", 0, false)
				for _, m := range w.upTo("sign") {
					t.Errorf("%s (%v) receives %s", u.Name, u.Role, m.TopicName)
				}
				tried++
			}
			observer.subscribe(system)
			observer.awaits(func(m *packets.PublishPacket) bool { return m.TopicName == system })
			observer.unsubscribe(system)
			observer.got = nil
			t.Logf("%s: %d topics tried", u.Name, tried)
		}
	})
}

// A filter with wildcards gives nothing but what may be read. The embedded
// broker refuses one that would give less than it says.
func TestAccessByWildcard(t *testing.T) {
	guardedBrokers(t, func(t *testing.T, g *guarded) {
		observer := g.as(User{Name: "observer"})
		root, sign := Topic(site, desk, ""), Topic(site, desk, "status")
		for _, u := range everybody {
			all := append(topicsOf(site, desk, u.Name), elsewhere...)
			all = slices.DeleteFunc(all, func(topic string) bool { return strings.HasPrefix(topic, "$") })
			for filter, want := range map[string]string{ // what the embedded broker gives
				"#": "", "+/#": "", "shoed/#": "", "shoed/v1/#": "", "$SYS/#": "", "+/+/+/+/+": "", "$share/x/" + sign: "",
				"shoed/v1/+/+/#":          allowed[Surveillance].read,
				"shoed/v1/+/+/+":          "status info roads insurance state event health alerts audit cmd nonsense",
				"shoed/v1/+/+/state":      "state",
				"shoed/v1/+/+/alerts":     "alerts",
				"shoed/v1/+/+/audit":      "audit",
				root + "cmd/+/+":          "cmd/{me}/sync cmd/{me}/pause cmd/{me}/loopback cmd/other/sync cmd/other/loopback",
				root + "rsp/" + "+/+":     "rsp/{me}/sync rsp/other/sync",
				root + "rsp/{me}/+":       "rsp/{me}/sync",
				root + "replay/+":         "replay/{me} replay/other",
				root + "cmd/{me}/#":       "cmd/{me} cmd/{me}/sync cmd/{me}/pause cmd/{me}/loopback cmd/{me}/a/b",
				root + "+/{me}/sync":      "cmd/{me}/sync rsp/{me}/sync",
				"shoed/v1/+/table-1/info": "info",
			} {
				filter = strings.ReplaceAll(filter, "{me}", u.Name)
				w := g.as(u)
				granted := w.subscribe(filter)
				w.subscribe(sign)
				for _, topic := range all {
					observer.publish(topic, "m", 0, false)
				}
				observer.publish(sign, "sign", 0, false)
				got := map[string]bool{}
				for _, m := range w.upTo("sign") {
					got[m.TopicName] = true
				}
				for topic := range got {
					if topic != sign && !has(allowed[u.Role].read, root, topic, u.Name) {
						t.Errorf("%s (%v) receives %s by %s", u.Name, u.Role, topic, filter)
					}
				}
				whole := want != ""
				for name := range strings.FieldsSeq(strings.ReplaceAll(want, "{me}", u.Name)) {
					readable := has(allowed[u.Role].read, root, root+name, u.Name)
					whole = whole && readable
					if readable && !got[root+name] && granted {
						t.Errorf("%s (%v) does not receive %s by %s", u.Name, u.Role, name, filter)
					}
				}
				if granted && !whole && g.embedded {
					t.Errorf("%s (%v) is granted %s", u.Name, u.Role, filter)
				}
			}
		}
		w := g.as(people[0])
		if !w.subscribe("shoed/v1/+/+/state") {
			t.Error("a board may not subscribe the state of all tables")
		}
	})
}

// A will is published only if its topic may be written. mosquitto takes the
// connection nevertheless, the embedded broker does not.
func TestAccessOfWills(t *testing.T) {
	guardedBrokers(t, func(t *testing.T, g *guarded) {
		observer := g.as(User{Name: "observer"})
		observer.subscribe("#")
		observer.subscribe("$SYS/x")
		for _, u := range everybody {
			addr, password := g.addr, passwordOf(u.Name)
			if u.Role == itself {
				addr, password = g.own, g.tablePassword
			}
			for _, topic := range append(topicsOf(site, desk, u.Name), elsewhere...) {
				body, want := u.Name+" on "+topic, has(allowed[u.Role].write, Topic(site, desk, ""), topic, u.Name)
				w := connectAs(t, addr, u.Name, password, func(c *packets.ConnectPacket) {
					c.WillFlag, c.WillQos, c.WillRetain, c.WillTopic, c.WillMessage = true, 1, true, topic, []byte(body)
				})
				if w.code != 0 && (want || !g.embedded) || w.code == 0 && !want && g.embedded {
					t.Errorf("%s (%v), will on %s: connection answered with %d", u.Name, u.Role, topic, w.code)
				}
				w.conn.Close()
				if want {
					for _, m := range observer.upTo(body) {
						t.Errorf("%s on %s", m.Payload, m.TopicName)
					}
				} else {
					g.as(u) // takes the old session's place, which is when its will is dealt with at the latest
				}
			}
		}
		observer.publish("mark", "end", 0, false)
		for _, m := range observer.upTo("end") {
			t.Errorf("%s on %s", m.Payload, m.TopicName)
		}
	})
}

func TestLogin(t *testing.T) {
	guardedBrokers(t, func(t *testing.T, g *guarded) {
		right := passwordOf("anna")
		for _, c := range []struct {
			user, password string
			ok             bool
		}{
			{"anna", right, true}, {"board-1", passwordOf("board-1"), true}, {"tom", passwordOf("tom"), true},
			{"anna", "", false}, {"anna", "anna", false}, {"anna", right + " ", false}, {"anna", right[1:], false},
			{"Anna", right, false}, {"anna ", right, false}, {"board-1", right, false},
			{"nobody", "x", false}, {"nobody", right, false}, {"", "", false}, {desk, "x", false},
		} {
			for range 3 {
				if w := connectAs(t, g.addr, c.user, c.password, nil); (w.code == 0) != c.ok {
					t.Errorf("%q, %q: answered with %d", c.user, c.password, w.code)
				}
			}
		}
		if !g.embedded {
			return
		}
		if w := connectAs(t, g.own, "nobody", "x", nil); w.code == 0 {
			t.Error("the table's own address lets in everybody")
		}
		for user, want := range map[string]int{"Anna": 1, "nobody": 0, "anna": 1, desk: 1, "board-1": 1, "tom": 0} { // of strangers the first
			if n := g.log.count("code=login_refused user=" + user + " "); n != want {
				t.Errorf("%s: %d refusals logged, want %d:\n%s", user, n, want, g.log)
			}
		}
	})
}

// A client id is its user's: the library would hand over the session, with what
// is under way in it.
func TestClientIDOfAnother(t *testing.T) {
	g := guardedBroker(t)
	first := connectAs(t, g.addr, "anna", passwordOf("anna"), func(c *packets.ConnectPacket) { c.ClientIdentifier = "one" })
	named := func(c *packets.ConnectPacket) { c.ClientIdentifier, c.CleanSession = "one", false }
	if w := connectAs(t, g.addr, "board-1", passwordOf("board-1"), named); w.code == 0 {
		t.Error("a board has taken over a supervisor's session")
	}
	if !first.publish(Topic(site, desk, "cmd/anna/sync"), "still there", 0, false) {
		t.Error("the supervisor was thrown out")
	}
	if w := connectAs(t, g.addr, "anna", passwordOf("anna"), named); w.code != 0 {
		t.Error("a user cannot come back while his old connection is there")
	}
	if w := connectAs(t, g.own, desk, g.tablePassword, func(c *packets.ConnectPacket) { c.ClientIdentifier = "one" }); w.code != 0 {
		t.Error("a user can keep the table out")
	}
	if n := g.log.count("code=client_id_refused user=board-1 from=127.0.0.1 client=one"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, g.log)
	}
}

// The log tells of each refused right once, and of no password ever.
func TestRefusalsAreLogged(t *testing.T) {
	g := guardedBroker(t)
	for range 3 {
		w := g.as(people[0])
		w.subscribe(Topic(site, desk, "audit"))
		w.publish(Topic(site, desk, "state"), "x", 0, true)
		second := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
		second.ProtocolName, second.ProtocolVersion, second.UsernameFlag, second.PasswordFlag = "MQTT", 4, true, true
		second.Username, second.Password = "anna", []byte("heimlich")
		second.CleanSession = true
		second.Write(w.conn)
		w.until(func(packets.ControlPacket) bool { return false })
	}
	if n := g.log.count("level=WARN"); n != 1 || g.log.count("code=right_refused user=board-1 from=127.0.0.1 does=read topic="+Topic(site, desk, "audit")) != 1 {
		t.Errorf("%d warnings:\n%s", n, g.log)
	}
	if g.log.count("second connect") == 0 {
		t.Errorf("the second CONNECT is not in the log:\n%s", g.log)
	}
	for _, secret := range []string{"heimlich", fmt.Sprint([]byte("heimlich")), "geheim", "$7$", g.tablePassword} {
		if strings.Contains(g.log.String(), secret) {
			t.Errorf("%q in the log:\n%s", secret, g.log)
		}
	}
}

// A publisher needs no more than the table's rights, and a board sees it work.
func TestPublisherHasItsRights(t *testing.T) {
	guardedBrokers(t, func(t *testing.T, g *guarded) {
		board := g.as(people[0])
		for name := range strings.FieldsSeq(shown) {
			board.subscribe("shoed/v1/+/+/" + name)
		}
		d := newTable(t, 1)
		d.deal(30)
		r := publish(t, d, g.own, func(o *Options) { o.User, o.Password = desk, g.tablePassword })
		seen := map[string]bool{}
		board.until(func(packets.ControlPacket) bool {
			for _, m := range board.got {
				seen[m.TopicName[strings.LastIndexByte(m.TopicName, '/')+1:]] = true
				if strings.HasSuffix(m.TopicName, "/event") && bytes.Contains(m.Payload, fmt.Appendf(nil, `"seq":%d,`, d.last())) {
					return true
				}
			}
			return false
		})
		for name := range strings.FieldsSeq(shown) {
			if !seen[name] && name != "health" {
				t.Errorf("a board saw no %s", name)
			}
		}
		r.stop(nil)
		if err := r.end(); err != nil {
			t.Error(err)
		}
		if g.embedded && g.log.count("refused") > 0 {
			t.Errorf("log of the broker:\n%s", g.log)
		}
	})
}

// An address that others can reach is opened only to users, and one without TLS
// is warned of.
func TestBrokerOnTheNetwork(t *testing.T) {
	cert, key := filepath.Join(certificates, "cert.pem"), filepath.Join(certificates, "key.pem")
	for _, c := range []struct {
		address    string
		secure     bool
		warnings   int
		tcp, web   string // schemes
		otherwise  string // a scheme by which nobody gets in
		without    bool   // users
		impossible bool
	}{
		{address: "0.0.0.0:0", warnings: 2, tcp: "tcp://", web: "ws://", otherwise: "ssl://"},
		{address: "0.0.0.0:0", secure: true, tcp: "ssl://", web: "wss://", otherwise: "tcp://"},
		{address: "127.0.0.1:0", tcp: "tcp://", web: "ws://", otherwise: "ssl://"},
		{address: "127.0.0.1:0", secure: true, tcp: "ssl://", web: "wss://", otherwise: "tcp://"},
		{address: "127.0.0.1:0", secure: true, without: true, tcp: "ssl://", web: "wss://", otherwise: "tcp://"},
		{address: "0.0.0.0:0", secure: true, without: true, impossible: true},
	} {
		log := &lines{}
		o := BrokerOptions{TCP: c.address, WebSocket: c.address, Site: site, Table: desk, Log: slog.New(slog.NewTextHandler(log, nil))}
		if c.secure {
			o.CertFile, o.KeyFile = cert, key
		}
		if !c.without {
			o.Users, o.PasswordFile = people[:1], passwordFile(t, people[0].Name)
		}
		b, err := OpenBroker(o)
		if c.impossible {
			if err == nil || !strings.Contains(err.Error(), "not on the loopback") {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.address[0] == '0' && !strings.HasPrefix(b.TCP, "0.0.0.0:") {
			t.Errorf("%s listens on %s", c.address, b.TCP)
		}
		local := func(addr string) string { return "127.0.0.1" + addr[strings.LastIndexByte(addr, ':'):] }
		for _, server := range []string{c.tcp + local(b.TCP), c.web + local(b.WebSocket)} {
			p := paho.NewClientOptions().AddBroker(server).SetClientID("x").SetAutoReconnect(false).SetUsername(people[0].Name)
			client := paho.NewClient(p.SetPassword(passwordOf(people[0].Name)))
			if token := client.Connect(); !token.WaitTimeout(patience) || token.Error() != nil {
				t.Errorf("%+v: %s: %v", c, server, token.Error())
			}
			client.Disconnect(0)
			wrong := paho.NewClient(p.SetPassword("wrong"))
			if token := wrong.Connect(); !token.WaitTimeout(patience) || (token.Error() == nil) != c.without {
				t.Errorf("%+v: %s with a wrong password: %v", c, server, token.Error())
			}
			wrong.Disconnect(0)
		}
		other := paho.NewClient(paho.NewClientOptions().AddBroker(c.otherwise + local(b.TCP)).SetAutoReconnect(false).
			SetUsername(people[0].Name).SetPassword(passwordOf(people[0].Name)))
		if token := other.Connect(); !token.WaitTimeout(patience) || token.Error() == nil {
			t.Errorf("%+v: got in by %s", c, c.otherwise)
		}
		d := newTable(t, 1)
		in := publish(t, d, strings.TrimPrefix(b.Server, "mqtt://"), func(o *Options) { o.User, o.Password = b.User, b.Password })
		until(t, "the publisher's connection", func() bool { return in.log.count("code=broker_connected") == 1 })
		in.stop(nil)
		if err := in.end(); err != nil {
			t.Error(err)
		}
		if n := log.count("code=broker_plain"); n != c.warnings {
			t.Errorf("%+v: %d warnings: %s", c, n, log)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestBrokerUsersAreWrong(t *testing.T) {
	path := passwordFile(t, "anna", desk)
	for _, c := range []struct {
		o   BrokerOptions
		why string
	}{
		{BrokerOptions{Users: []User{{"anna", Pit}, {"bob", Floor}}, PasswordFile: path}, `user "bob" has no password; give one: mosquitto_passwd ` + path + " bob"},
		{BrokerOptions{Users: []User{{"anna", Pit}, {"anna", Floor}}, PasswordFile: path}, `user "anna" is there twice`},
		{BrokerOptions{Users: []User{{desk, Pit}}, PasswordFile: path}, `user "table-1" is there twice, or is the table itself`},
		{BrokerOptions{Users: []User{{"anna", Pit}}, PasswordFile: "/none"}, "/none"},
		{BrokerOptions{CertFile: "/none", KeyFile: "/nokey"}, "certificate /none, key /nokey"},
	} {
		c.o.TCP, c.o.Site, c.o.Table, c.o.Log = "127.0.0.1:0", site, desk, slog.New(slog.DiscardHandler)
		if b, err := OpenBroker(c.o); err == nil {
			b.Close()
			t.Errorf("no error, want %q", c.why)
		} else if !strings.Contains(err.Error(), c.why) {
			t.Errorf("%v, want %q", err, c.why)
		}
	}
}

// Of what a user wants retained nothing is kept, neither of messages nor of
// wills; it reaches who listens.
func TestUsersRetainNothing(t *testing.T) {
	g := guardedBroker(t)
	observer := g.as(User{Name: "observer"})
	observer.subscribe("#")
	topic := Topic(site, desk, "cmd/anna/pause")
	anna := User{"anna", Pit}
	g.as(anna).publish(topic, "message", 1, true)
	observer.upTo("message")
	w := connectAs(t, g.addr, anna.Name, passwordOf(anna.Name), func(c *packets.ConnectPacket) {
		c.WillFlag, c.WillRetain, c.WillTopic, c.WillMessage = true, true, topic, []byte("will")
	})
	w.conn.Close()
	observer.upTo("will")
	g.as(User{desk, itself}).publish(Topic(site, desk, "state"), "document", 1, true)
	late := connectAs(t, g.addr, "observer", passwordOf("observer"), func(c *packets.ConnectPacket) { c.ClientIdentifier = "late" })
	late.subscribe("#")
	observer.publish("mark", "end", 0, false)
	if kept := late.upTo("end"); len(kept) != 1 || string(kept[0].Payload) != "document" {
		t.Errorf("kept: %v", kept)
	}
}
