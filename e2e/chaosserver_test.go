package e2e

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// chaosServerArg as the first argument makes the test binary an MCP server on stdio
// that dies, hangs and lies at random.
const chaosServerArg = "chaos-mcp-server"

// chaosMind decides what becomes of each request, by a seed and by what the request
// says: the same request has the same fate in each process.
type chaosMind struct {
	seed uint64
	calm func() bool // from now on the server does all that it is asked, at once
	// loses: the server may lose the ids of answers. Where it has several requests of one
	// client at a time, and one stream for all answers, nobody could tell them apart.
	loses bool
}

// voice is how a server of one transport says things. One that several requests share
// is safe for concurrent use.
type voice interface {
	say(message string)
	halves(message string) // in two parts, with a pause
	noise()                // what is no JSON-RPC
	hang()                 // after it nothing comes for this request
	die()                  // the session ends with it
}

func (c *chaosMind) rng(nonce []byte) *rand.Rand {
	if len(nonce) == 0 { // a request of the gateway's own: all of them would have one fate
		return rand.New(rand.NewPCG(c.seed, rand.Uint64()))
	}
	h := fnv.New64a()
	_, _ = h.Write(nonce) // it does not fail
	return rand.New(rand.NewPCG(c.seed, h.Sum64()))
}

// upTo returns a random time.
func upTo(rng *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(most)))
}

// fate is one way of a server to serve a request, and how often it is chosen.
type fate struct {
	weight int
	act    func(c *chaosCall)
}

// chaosCall is one request on its way through a chaotic server.
type chaosCall struct {
	rng   *rand.Rand
	to    voice
	id    json.RawMessage
	nonce string
	tools string // the member of a list of tools, with its comma
	token json.RawMessage
	loses bool // the server may lose the id
}

func (c *chaosCall) pause(most time.Duration) { time.Sleep(upTo(c.rng, most)) }

func (c *chaosCall) result() string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{%s"content":[{"type":"text","text":"%s"}],"pad":"%s"}}`,
		c.id, c.tools, c.nonce, strings.Repeat("x", c.rng.IntN(2000)))
}

func (c *chaosCall) named(id, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"text":"%s"}}`, id, text)
}

// fates of requests; most are answered.
func fates() []fate {
	return []fate{
		{560, func(c *chaosCall) { c.pause(100 * time.Millisecond); c.to.say(c.result()) }},
		{50, func(c *chaosCall) { c.to.say(c.result()); c.to.say(c.named(string(c.id), c.nonce)) }},
		{40, func(c *chaosCall) {
			if id := string(c.id); c.loses {
				c.id = json.RawMessage([]string{"0", "-1", "999999999", `"nobody"`, "1.5", "null", `"` + id + `"`, id + ".0"}[c.rng.IntN(8)])
			}
			c.to.say(c.named("{}", "no response, and so nobody's"))
			c.to.say(c.result())
		}},
		{40, func(c *chaosCall) { c.to.hang() }},
		{30, func(c *chaosCall) {
			time.Sleep(1500*time.Millisecond + upTo(c.rng, 3*time.Second))
			c.to.say(c.result())
		}},
		{60, func(c *chaosCall) { c.to.halves(c.result()) }},
		{40, func(c *chaosCall) { c.to.noise(); c.to.say(c.result()) }},
		{50, func(c *chaosCall) { c.chatter(); c.to.say(c.result()) }},
		{40, func(c *chaosCall) { c.ask(); c.pause(300 * time.Millisecond); c.to.say(c.result()) }},
		{30, func(c *chaosCall) {
			c.to.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"%s","data":{"reason":"server"}}}`, c.id, c.nonce))
		}},
		{20, func(c *chaosCall) {
			c.to.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":1,"message":"%s"}}`, c.id, c.nonce))
		}},
		{1, func(c *chaosCall) {
			c.to.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + strings.Repeat("x", chaosLine) + `"}}`)
			c.to.say(c.result())
		}},
		{1, func(c *chaosCall) {
			c.to.say(strings.Replace(c.result(), `"pad":"`, `"pad":"`+strings.Repeat("x", chaosLine), 1))
		}},
		{10, func(c *chaosCall) { c.to.die() }},
	}
}

// chaosLine is the longest message that a server may send.
const chaosLine = 16 << 20

// chatter sends what the client may or may not get, but no other client.
func (c *chaosCall) chatter() {
	for range c.rng.IntN(4) {
		if c.token != nil {
			c.to.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"message":"%s"}}`, c.token, c.nonce))
		}
		c.to.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + c.nonce + `"}}`)
		c.to.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		c.to.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://chaos"}}`)
		c.to.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + string(c.id) + `}}`)
		c.pause(100 * time.Millisecond)
	}
}

// ask sends a request to the client.
func (c *chaosCall) ask() {
	method := []string{"ping", "roots/list", "sampling/createMessage", "elicitation/create"}[c.rng.IntN(4)]
	c.to.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":"asked-%s","method":"%s","params":{"message":"%s"}}`, c.nonce, method, c.nonce))
}

var nonceOf = regexp.MustCompile(`<\d+\.\d+>`)

// serve does with one message what its fate is. It returns when that is done.
func (c *chaosMind) serve(message []byte, to voice) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			ProtocolVersion string `json:"protocolVersion"`
			Meta            struct {
				ProgressToken json.RawMessage `json:"progressToken"`
			} `json:"_meta"`
		} `json:"params"`
	}
	if json.Unmarshal(message, &m) != nil || m.ID == nil || m.Method == "" {
		return
	}
	nonce := nonceOf.Find(message)
	call := &chaosCall{rng: c.rng(nonce), to: to, id: m.ID, nonce: string(nonce), token: m.Params.Meta.ProgressToken, loses: c.loses}
	if m.Method == "tools/list" { // it changes from time to time
		call.tools = fmt.Sprintf(`"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"extra-%d","inputSchema":{"type":"object"}}],`, rand.IntN(3))
	}
	answer := call.result()
	switch m.Method {
	case "initialize":
		answer = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"chaos","version":"1"}}}`,
			m.ID, m.Params.ProtocolVersion, `{"tools":{"listChanged":true},"logging":{},"resources":{"subscribe":true}}`)
	case "ping":
		answer = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
	}
	switch {
	case c.calm():
		to.say(answer)
	case m.Method == "initialize" || m.Method == "ping":
		c.greet(to, answer)
	default:
		call.meet(c)
	}
}

// greet answers a handshake or a ping, mostly.
func (c *chaosMind) greet(to voice, answer string) {
	switch n := rand.IntN(40); { // that of each process differs
	case n == 0:
		to.die()
	case n == 1:
		to.hang()
	case n == 2:
		time.Sleep(time.Second)
		fallthrough
	default:
		to.say(answer)
	}
}

// meet chooses a fate.
func (c *chaosCall) meet(mind *chaosMind) {
	all, sum := fates(), 0
	for _, f := range all {
		sum += f.weight
	}
	n := c.rng.IntN(sum)
	for _, f := range all {
		if n -= f.weight; n < 0 {
			f.act(c)
			return
		}
	}
}

// chaosStdio speaks on stdout.
type chaosStdio struct{ out lockedWriter }

func (s *chaosStdio) say(message string) { s.out.printf("%s\n", message) }

func (s *chaosStdio) halves(message string) {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	fmt.Fprint(s.out.w, message[:len(message)/2])
	time.Sleep(300 * time.Millisecond)
	fmt.Fprintln(s.out.w, message[len(message)/2:])
}

func (s *chaosStdio) noise() {
	s.out.printf("Listening...\n{\"jsonrpc\":\n[]\nnull\n\x00\xff\xfe\n")
	fmt.Fprintln(os.Stderr, strings.Repeat("e", 10_000))
}

func (s *chaosStdio) hang() {}

// die ends the process in one of the ways in which processes end.
func (s *chaosStdio) die() {
	switch rand.IntN(4) {
	case 0:
		s.out.printf(`{"jsonrpc":"2.0","id":1,"res`)
		os.Exit(0)
	case 1:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // it does not fail
	case 2:
		_ = os.Stdout.Close() // it lives on, mute
	default:
		os.Exit(3)
	}
}

// chaosServer serves MCP on stdio until its input ends, if it lives that long.
func chaosServer(args []string, in io.Reader, out io.Writer) int {
	flags := flag.NewFlagSet(chaosServerArg, flag.ExitOnError)
	seed := flags.Uint64("seed", 1, "of what happens to requests")
	loses := flags.Bool("loses", false, "lose ids")
	calmFile := flags.String("calm", "", "once this file exists, serve well")
	_ = flags.Parse(args) // ExitOnError
	mind := &chaosMind{seed: *seed, loses: *loses, calm: func() bool { _, err := os.Stat(*calmFile); return err == nil }}
	to := &chaosStdio{out: lockedWriter{w: out}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if rand.IntN(300) == 0 { // nothing is read or served for a while
			for end := time.Now().Add(time.Duration(rand.IntN(5000)) * time.Millisecond); time.Now().Before(end) && !mind.calm(); {
				time.Sleep(50 * time.Millisecond)
			}
		}
		line := append([]byte(nil), lines.Bytes()...)
		go mind.serve(line, to) // the process may end before it
	}
	return 0
}
