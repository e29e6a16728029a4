package login

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// dns is a DNS server on loopback, whose answers change.
type dns struct {
	net.PacketConn
	mu    sync.Mutex
	names map[string]string // addresses by names with a dot at the end
}

func startDNS(t *testing.T) *dns {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	ssetest.Must(t, err)
	d := &dns{PacketConn: conn, names: map[string]string{}}
	var work sync.WaitGroup
	work.Go(d.serve) // ends with conn
	t.Cleanup(func() {
		_ = conn.Close()
		work.Wait()
	})
	return d
}

// set has a name lead to addresses from now on.
func (d *dns) set(name, addresses string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names[name+"."] = addresses
}

// resolver asks this server alone.
func (d *dns) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", d.LocalAddr().String())
	}}
}

func (d *dns) serve() {
	asked := make([]byte, 512)
	for {
		n, from, err := d.ReadFrom(asked)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(asked[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		answer := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
		d.mu.Lock()
		addresses := strings.Fields(d.names[q.Name.String()])
		d.mu.Unlock()
		for _, address := range addresses {
			at := netip.MustParseAddr(address)
			header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: dnsmessage.ClassINET}
			switch {
			case at.Is4() && q.Type == dnsmessage.TypeA:
				answer.Answers = append(answer.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: at.As4()}})
			case at.Is6() && q.Type == dnsmessage.TypeAAAA:
				answer.Answers = append(answer.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: at.As16()}})
			}
		}
		if packed, err := answer.Pack(); err == nil {
			_, _ = d.WriteTo(packed, from) // who asked may have gone
		}
	}
}

// A name that has led to a public address, or to the server's, leads elsewhere the next time: what DNS says at the
// moment of the dialling counts, for each request and each redirect anew.
func TestNamesThatMove(t *testing.T) {
	const public, name = "192.0.2.1", "moving.example"
	errPublic := errors.New("it would be dialled") // what a test does not do
	for what, c := range map[string]struct {
		server  string   // where the server is; empty: at a public address
		answers []string // of DNS, one for each request
		want    []error  // of each request
	}{
		"to the metadata of a cloud":     {"", []string{public, "169.254.169.254", public}, []error{errPublic, errInside, errPublic}},
		"to this machine":                {"", []string{public, "127.0.0.1"}, []error{errPublic, errInside}},
		"to this machine by IPv6":        {"", []string{public, "::1"}, []error{errPublic, errInside}},
		"to this network":                {"", []string{public, "10.1.2.3"}, []error{errPublic, errInside}},
		"to that of a provider":          {"", []string{public, "100.64.0.1"}, []error{errPublic, errInside}},
		"to IPv4 in IPv6":                {"", []string{public, "::ffff:169.254.169.254"}, []error{errPublic, errInside}},
		"to several":                     {"", []string{public, "169.254.169.254 127.0.0.1 ::1 10.1.2.3"}, []error{errPublic, errInside}},
		"from the server's machine":      {"127.0.0.1", []string{"127.0.0.1", "169.254.169.254", "100.64.0.1", "127.0.0.1"}, []error{nil, errInside, errInside, nil}},
		"from the server's network":      {"10.1.2.3", []string{"127.0.0.1", "169.254.169.254"}, []error{errInside, errInside}},
		"from the server's, which is it": {"169.254.169.254", []string{"127.0.0.1", "10.1.2.3"}, []error{errInside, errInside}},
	} {
		t.Run(what, func(t *testing.T) {
			d, asked := startDNS(t), 0
			inside := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
			defer inside.Close()
			_, port, _ := net.SplitHostPort(inside.Listener.Addr().String())
			at := netip.Addr{}
			if c.server != "" {
				at = netip.MustParseAddr(c.server)
			}
			g := newGuard(&http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, at)
			g.dialer.Resolver = d.resolver()
			control := g.dialer.Control
			g.dialer.Control = func(network, address string, conn syscall.RawConn) error {
				if err := control(network, address, conn); err != nil {
					return err
				}
				if strings.HasPrefix(address, public) {
					return errPublic
				}
				return nil
			}
			answered := 0
			for i, addresses := range c.answers {
				d.set(name, addresses)
				resp, err := g.reading().Get("https://" + name + ":" + port + "/")
				if err == nil {
					resp.Body.Close()
				}
				if !errors.Is(err, c.want[i]) {
					t.Errorf("%s: got %v, want %v", addresses, err, c.want[i])
				}
				if c.want[i] == nil {
					answered++
				}
			}
			ssetest.Want(t, "requests", asked, answered)
		})
	}
}

// A redirect to a name is looked at when that is dialled, and so is a name that the redirect has from before.
func TestRedirectsToNamesThatMove(t *testing.T) {
	d, asked := startDNS(t), 0
	var to string
	redirecting := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked++
		d.set("server.example", "169.254.169.254")
		http.Redirect(rw, r, to, http.StatusFound)
	}))
	defer redirecting.Close()
	_, port, _ := net.SplitHostPort(redirecting.Listener.Addr().String())
	g := newGuard(&http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, netip.MustParseAddr("127.0.0.1"))
	g.dialer.Resolver = d.resolver()
	d.set("other.example", "100.64.0.1")
	for i, name := range []string{"server.example", "other.example"} {
		d.set("server.example", "127.0.0.1")
		to = "https://" + name + ":" + port + "/elsewhere"
		resp, err := g.reading().Get("https://server.example:" + port + "/")
		if err == nil {
			resp.Body.Close()
		}
		if !errors.Is(err, errInside) {
			t.Errorf("a redirect to %s: got %v", name, err)
		}
		ssetest.Want(t, "requests", asked, i+1)
	}
}
