package mqtt

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

const (
	// What is remembered of refusals; what comes after is not logged.
	maxTold = 1000
	// How long the end of an earlier connection is waited for, which takes a
	// write to it at most, and its will's to others.
	succeedWait = 2 * brokerWrite
)

// refusedRight is one message for what a user does.
const refusedRight = "a user was refused at the broker: its role may not do this"

// admission is the library's hook for who may connect and do what. Without
// users it asks nobody, and everybody may do everything.
type admission struct {
	mochi.HookBase
	server *mochi.Server
	log    *slog.Logger
	users  atomic.Pointer[map[string]login] // nil: it asks nobody

	mu   sync.Mutex
	told map[string]bool // refusals that have been logged
}

// login is what the broker knows of a user.
type login struct {
	role     Role
	password password
	access   access
}

// Logins are users of a Broker with their passwords.
type Logins struct{ of map[string]login }

// same tells whether who came in by one would by the other, to do the same.
func (l login) same(m login) bool {
	return l.role == m.role && bytes.Equal(l.password.salt, m.password.salt) && bytes.Equal(l.password.hash, m.password.hash)
}

// hook makes the library's hook, and for users a login of the table itself,
// whose password no other program knows.
func (b *Broker) hook(o BrokerOptions) (*admission, error) {
	h := &admission{server: b.server, log: o.Log, told: map[string]bool{}}
	if len(o.Users) == 0 {
		return h, nil
	}
	b.User, b.Password = o.Table, rand.Text()
	own, err := newPassword(b.Password)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	b.site, b.own = o.Site, login{itself, own, User{o.Table, itself}.at(o.Site, o.Table)}
	users, err := b.Logins(o.Users, o.PasswordFile)
	if err != nil {
		return nil, err
	}
	h.users.Store(&users.of)
	return h, nil
}

// Logins reads the passwords of users from a file of mosquitto_passwd. The
// error names the user or line, and what to do.
func (b *Broker) Logins(users []User, passwordFile string) (*Logins, error) {
	passwords, err := readPasswords(passwordFile)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: passwords: %w", err)
	}
	l := &Logins{map[string]login{b.User: b.own}}
	for _, u := range users {
		kept, known := passwords[u.Name]
		if !known {
			return nil, fmt.Errorf("embedded broker: user %q has no password; give one: mosquitto_passwd %s %s", u.Name, passwordFile, u.Name)
		}
		if _, taken := l.of[u.Name]; taken {
			return nil, fmt.Errorf("embedded broker: user %q is there twice, or is the table itself; give another name", u.Name)
		}
		l.of[u.Name] = login{u.Role, kept, u.at(b.site, b.User)}
	}
	return l, nil
}

// Admit lets these in from now on and nobody else, and ends the connections of
// those whose password or role is another than it was. It is for a broker that
// was opened with users, and waits for nothing.
func (b *Broker) Admit(l *Logins) {
	old := *b.admission.users.Swap(&l.of)
	for _, cl := range b.server.Clients.GetAll() {
		user := cl.Properties.Username
		if !old[string(user)].same(l.of[string(user)]) {
			go cl.Stop(packets.ErrNotAuthorized) // ends soon; TLS may take 5 s to take leave
		}
	}
}

// login is that of a name; the zero one, which may nothing, of a stranger.
func (h *admission) login(name []byte) (l login, known bool) {
	users := h.users.Load()
	if users == nil { // nobody is asked
		return login{}, false
	}
	l, known = (*users)[string(name)]
	return l, known
}

// ID names the hook.
func (*admission) ID() string { return "admission" }

// Provides lists the methods that are to be called.
func (*admission) Provides(what byte) bool {
	return what == mochi.OnConnectAuthenticate || what == mochi.OnACLCheck || what == mochi.OnPublish || what == mochi.OnWill
}

// OnConnectAuthenticate tells whether a client may connect.
func (h *admission) OnConnectAuthenticate(cl *mochi.Client, pk packets.Packet) bool {
	if h.users.Load() != nil && !h.knows(cl, &pk.Connect) {
		return false
	}
	h.succeed(cl)
	return true
}

// knows tells whether a client is who he says, and may have the client id and the
// will that he asks for. The library asks nowhere else about the will, and gives
// anybody with a client id its session, with what is under way in it.
func (h *admission) knows(cl *mochi.Client, c *packets.ConnectParams) bool {
	u, known := h.login(c.Username)
	if !known || !u.password.is(c.Password) {
		return h.refuse(cl, "login_refused", "a client was refused at the broker: unknown user or wrong password")
	}
	if old, taken := h.server.Clients.Get(cl.ID); taken && u.role != itself && string(old.Properties.Username) != string(c.Username) {
		return h.refuse(cl, "client_id_refused", "a client was refused at the broker: another user has its client id", "client", bounded(cl.ID))
	}
	if c.WillFlag && !u.access.mayWrite(c.WillTopic) {
		return h.refuse(cl, "right_refused", refusedRight, "does", "will", "topic", bounded(c.WillTopic))
	}
	return true
}

// succeed ends an earlier connection with the client's id and waits until the
// library is through with it. What the library does last is to forget the client
// of that id, and then that was seen to be the new one: connected, but deaf.
func (h *admission) succeed(cl *mochi.Client) {
	old, there := h.server.Clients.Get(cl.ID)
	if !there {
		return
	}
	h.server.DisconnectClient(old, packets.ErrSessionTakenOver)
	p := &old.Properties
	if p.ProtocolVersion < 5 && !p.Clean || p.ProtocolVersion == 5 && p.Props.SessionExpiryInterval > 0 {
		return // its session is not forgotten
	}
	for began := time.Now(); time.Since(began) < succeedWait; time.Sleep(time.Millisecond) {
		if now, there := h.server.Clients.Get(cl.ID); !there || now != old {
			return
		}
	}
}

// OnACLCheck tells whether a client may publish on a topic, subscribe a filter,
// or be given a message.
func (h *admission) OnACLCheck(cl *mochi.Client, topic string, write bool) bool {
	if h.users.Load() == nil {
		return true
	}
	u, _ := h.login(cl.Properties.Username)
	switch {
	case write && !u.access.mayWrite(topic):
		return h.refuse(cl, "right_refused", refusedRight, "does", "write", "topic", bounded(topic))
	case !write && !u.access.mayRead(topic):
		return h.refuse(cl, "right_refused", refusedRight, "does", "read", "topic", bounded(topic))
	}
	return true
}

// OnPublish lets no user's message be retained: one on each topic that he may
// write would take memory for good, and a command must not be kept. Its
// subscribers get it as they would have.
func (h *admission) OnPublish(cl *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	if pk.FixedHeader.Retain && h.mustNotRetain(cl) {
		pk.FixedHeader.Retain = false
		h.refuse(cl, "retain_refused", "a message was not retained at the broker: only the table's own are", "topic", bounded(pk.TopicName))
	}
	return pk, nil
}

// OnWill does the same for wills.
func (h *admission) OnWill(cl *mochi.Client, will mochi.Will) (mochi.Will, error) {
	will.Retain = will.Retain && !h.mustNotRetain(cl)
	return will, nil
}

func (h *admission) mustNotRetain(cl *mochi.Client) bool {
	u, known := h.login(cl.Properties.Username)
	return known && u.role != itself
}

// refuse is false. It logs the first refusal of a code for each user and host,
// without what users made up, so that nobody can fill the log.
func (h *admission) refuse(cl *mochi.Client, code, what string, attrs ...any) bool {
	host, _, err := net.SplitHostPort(cl.Net.Remote)
	if err != nil {
		host = cl.Net.Remote
	}
	user := string(cl.Properties.Username)
	key := code + " " + host
	if _, known := h.login(cl.Properties.Username); known {
		key += " " + user
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.told[key] && len(h.told) < maxTold {
		h.told[key] = true
		h.log.Warn(what, append([]any{"code", code, "user", bounded(user), "from", host}, attrs...)...)
	}
	return false
}

// bounded is as much of what a stranger says as the log takes.
func bounded(s string) string { return s[:min(len(s), 100)] }
