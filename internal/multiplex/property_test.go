package multiplex_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// run is one random interleaving of what clients, server and time do to a session.
type run struct {
	t       *testing.T
	r       *rand.Rand
	opts    multiplex.Options
	session *multiplex.Session
	server  *chaosServer
	single  bool // all clients are of one principal
	unnamed bool // the server answers without ids

	actors  []*actor
	callers []*caller
	serial  int

	mu      sync.Mutex // guards what follows, and what the actors and the server know
	secrets map[string]*told
	log     []string
	failed  bool
}

// errorf reports the first thing that is wrong, and all that led there.
func (x *run) errorf(format string, args ...any) {
	if !x.failed {
		x.failed = true
		x.t.Errorf(format, args...)
		x.t.Logf("options %+v, after:\n%s", x.opts, strings.Join(x.log[max(0, len(x.log)-40):], "\n"))
	}
}

// say has the server send a message. The caller holds mu.
func (x *run) say(message, related string) {
	x.log = append(x.log, fmt.Sprintf("server (with %q): %s", related, message))
	select {
	case x.server.in <- incoming{data: []byte(message), related: jsonrpc.ID(related)}:
	default: // it has said a lot already
	}
}

func (x *run) join() {
	x.serial++
	principal := fmt.Sprint("user-", x.r.IntN(3))
	if x.single {
		principal = "user"
	}
	c := &actor{run: x, name: fmt.Sprint("client-", x.serial), principal: principal, open: make(map[string]*asked)}
	x.actors = append(x.actors, c)
	x.callers = append(x.callers, attach(x.session, c, c.name, c.principal))
}

func (x *run) leave(i int) {
	x.log = append(x.log, x.actors[i].name+" leaves")
	synctest.Wait()
	x.callers[i].Detach()
	x.mu.Lock()
	x.actors[i].left = true
	x.server.deserted(x.actors[i])
	x.mu.Unlock()
	x.actors, x.callers = slices.Delete(x.actors, i, i+1), slices.Delete(x.callers, i, i+1)
}

var chaosMethods = []string{
	`"tools/call","params":{"name":"x","secret":"{SECRET}"{META}}`, `"tools/call","params":{"secret":"{SECRET}","task":{}{META}}`,
	`"tools/list","params":{"secret":"{SECRET}"{META}}`, `"resources/read","params":{"secret":"{SECRET}"{META}}`,
	`"tasks/result","params":{"taskId":"task-0","secret":"{SECRET}"{META}}`, `"vendor/ask","params":{"n":1.50,"secret":"{SECRET}"{META}}`,
}

var chaosQuiet = []string{
	`"resources/subscribe","params":{"uri":"s:%d"}`, `"resources/unsubscribe","params":{"uri":"s:%d"}`, `"logging/setLevel","params":{"level":"%s"}`,
}

// ask has a client make a request under one of few ids.
func (x *run) ask(i int) {
	c := x.actors[i]
	id := []string{"0", "1", `"1"`, "1.50"}[x.r.IntN(4)]
	x.mu.Lock()
	if c.open[id] != nil {
		x.mu.Unlock()
		return
	}
	x.serial++
	a := &asked{client: c, secret: fmt.Sprintf("secret-%d-of-%s", x.serial, c.name), id: id}
	meta := ""
	if x.r.IntN(2) == 0 {
		a.token = []string{"0", "1", `"1"`}[x.r.IntN(3)]
		meta = `,"_meta":{"progressToken":{TOKEN},"v":1.0}`
	}
	body := chaosMethods[x.r.IntN(len(chaosMethods))]
	if x.r.IntN(4) == 0 && x.opts.Shared {
		body = chaosQuiet[x.r.IntN(len(chaosQuiet))]
		if strings.Contains(body, "%s") {
			body = fmt.Sprintf(body, []string{"debug", "info", "error"}[x.r.IntN(3)])
		} else {
			body = fmt.Sprintf(body, x.r.IntN(3))
		}
		a.token = ""
	}
	a.template = `{"jsonrpc":"2.0", "id":{ID},"method":` + strings.NewReplacer("{SECRET}", a.secret, "{META}", meta).Replace(body) + `}`
	c.open[id] = a
	x.secrets[a.secret] = &told{asked: a}
	message := a.message(id, a.token)
	x.log = append(x.log, c.name+": "+message)
	x.mu.Unlock()
	if x.callers[i].Forward(parse(x.t, message)) != nil {
		x.mu.Lock()
		delete(c.open, id)
		x.mu.Unlock()
	}
}

func (x *run) cancel(i int) {
	c := x.actors[i]
	x.mu.Lock()
	var all []string
	for id, a := range c.open {
		all = append(all, fmt.Sprintf(`{"requestId":%s,"reason":"%s"}`, id, a.secret))
	}
	x.mu.Unlock()
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	message := notification("notifications/cancelled", all[x.r.IntN(len(all))])
	x.log = append(x.log, c.name+": "+message)
	_ = x.callers[i].Forward(parse(x.t, message))
}

// offer has a client answer what the server has asked it, or another one.
func (x *run) offer(i int) {
	c := x.actors[i]
	x.mu.Lock()
	from := x.actors[x.r.IntN(len(x.actors))]
	if len(c.offers) == 0 {
		x.mu.Unlock()
		return
	}
	id := c.offers[x.r.IntN(len(c.offers))]
	x.mu.Unlock()
	_ = x.callers[slices.Index(x.actors, from)].Forward(parse(x.t, `{"jsonrpc":"2.0","id":`+id+`,"result":{"from":"`+from.name+`"}}`))
}

// speak has the server say something about a request that it has got.
func (x *run) speak() {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.server
	k := s.pick(x.r)
	if x.unnamed && !x.opts.Shared && len(s.open) > 0 {
		k = s.open[0] // that one gets it, whatever the server means
	}
	if k == nil || (x.unnamed || !x.opts.Shared) && !slices.Contains(s.open, k) { // no way to tell a second answer from that to another request
		return
	}
	if k.asked == nil || strings.Contains(k.template, `"uri"`) || strings.Contains(k.template, `"level"`) {
		x.answered(k)
		x.say(result(x.nameOf(k)), "")
		return
	}
	if n := x.r.IntN(16); n < 6 {
		x.aside(k, n)
	} else {
		x.reply(k, n)
	}
}

// aside has the server say something besides its answer. The caller holds mu.
func (x *run) aside(k *told, kind int) {
	secret := `"secret":"` + k.secret + `"`
	with := []string{k.wire, ""}[x.r.IntN(2)]
	switch kind {
	case 0:
		x.serial++
		id := fmt.Sprint(x.serial)
		x.server.offers[id] = k.asked
		x.say(`{"jsonrpc":"2.0","id":`+id+`,"method":"roots/list","params":{`+secret+`}}`, with)
	case 1:
		x.say(notification("notifications/message", `{"level":"error",`+secret+`}`), with)
	case 3:
		status := []string{"working", "completed"}[x.r.IntN(2)]
		x.say(notification("notifications/tasks/status", `{"taskId":"`+k.task+`","status":"`+status+`",`+secret+`}`), "")
	default:
		x.say(notification("notifications/progress", `{"progressToken":`+k.wire+`,`+secret+`}`), k.wire)
	}
}

func (x *run) nameOf(k *told) string {
	if x.unnamed {
		return "null"
	}
	return k.wire
}

// reply has the server answer, in one way or another. The caller holds mu.
func (x *run) reply(k *told, kind int) {
	s, id, secret := x.server, x.nameOf(k), `"secret":"`+k.secret+`"`
	switch kind {
	case 6: // twice
		if x.unnamed {
			return
		}
		m := s.reply(k, k.wire, `"result":{`+secret+`,"twice":1.0}`)
		x.say(m, k.wire)
		if x.r.IntN(2) == 0 {
			x.say(s.reply(k, "null", `"result":{`+secret+`}`), k.wire)
		} else {
			x.say(m, s.all[x.r.IntN(len(s.all))].wire) // in the HTTP response to any request
		}
	case 7: // without saying to what
		if !slices.Contains(s.open, k) {
			return // no way to tell it from an answer to another request
		}
		if !x.opts.Shared {
			k = s.open[0]
			secret = `"secret":"` + k.secret + `"`
		}
		x.say(s.reply(k, []string{"null", "999999"}[x.r.IntN(2)], `"result":{`+secret+`}`), []string{"", k.wire}[x.r.IntN(2)])
	case 8:
		if x.unnamed && !x.opts.Shared {
			return // it may be taken for the answer to a notification, and the next answer for this one
		}
		x.say(s.reply(k, id, `"error":{"code":1e0,"message":"`+k.secret+`"}`), "")
	case 9:
		x.serial++
		k.task = fmt.Sprint("task-", x.serial)
		x.say(s.reply(k, id, `"result":{`+secret+`,"task":{"taskId":"`+k.task+`","status":"working"}}`), "")
	case 10:
		if x.unnamed && !x.opts.Shared {
			return // it counts as no answer, and the next one as that to this request
		}
		x.say(`{"jsonrpc":"2.0","id":`+id+`,"result":{},"error":{}}`, "")
	default:
		x.say(s.reply(k, id, `"result":{`+secret+`}`), k.wire)
	}
	x.answered(k)
}

func (x *run) answered(k *told) {
	x.server.open = slices.DeleteFunc(x.server.open, func(o *told) bool { return o == k })
}

// step does one random thing.
func (x *run) step() {
	i := x.r.IntN(len(x.actors))
	switch n := x.r.IntN(100); {
	case n < 35:
		x.ask(i)
	case n < 75:
		x.speak()
	case n < 80:
		x.cancel(i)
	case n < 84:
		x.offer(i)
	case n < 90:
		time.Sleep(time.Duration(x.r.IntN(4000)) * time.Millisecond)
	case n < 92:
		x.mu.Lock()
		x.server.busy = !x.server.busy
		x.mu.Unlock()
	case n < 94:
		x.mu.Lock()
		x.say(notification("notifications/resources/updated", fmt.Sprintf(`{"uri":"s:%d"}`, x.r.IntN(4))), "")
		x.mu.Unlock()
	case n < 95:
		x.mu.Lock()
		x.say([]string{"no JSON", `{"jsonrpc":"2.0","id":1,"method":5}`, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`}[x.r.IntN(3)], "")
		x.mu.Unlock()
	case n < 98 && x.opts.Shared:
		if len(x.actors) > 1 {
			x.leave(i)
		}
		x.join()
	}
	if x.r.IntN(3) > 0 {
		synctest.Wait()
	}
}
