package compose_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The log says what is wrong with members and rules, once for all sessions and reloads.
func TestLog(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		empty := ""
		a, b := newFake("t", "u"), newFake("t")
		b.refuse = errors.New("not now")
		list := members("a", a, "b", b)
		list[0].Prefix, list[1].Prefix = &empty, &empty
		list[0].Include = []string{"*", "missing_*"}
		list[0].Rename = map[string]string{"none": "one"}
		var out ssetest.Output
		opts := compose.Options{Name: "team", Logger: ssetest.Logger(&out)}
		v, err := compose.New(list, opts)
		ssetest.Must(t, err)
		logged := ""
		says := func(what, want string) {
			t.Helper()
			synctest.Wait()
			now := out.String()
			lines := slices.Sorted(strings.Lines(now[len(logged):])) // two sessions write them
			ssetest.Want(t, what, strings.Join(lines, ""), want)
			logged = now
		}
		c, d := open(t, v), open(t, v)
		c.request(2, "tools/list", "{}")
		d.request(2, "tools/list", "{}")
		says("first", `level=WARN msg="member failed" server=team member=b err="not now"
level=WARN msg="rule meets nothing" server=team member=a rule="include \"missing_*\""
level=WARN msg="rule meets nothing" server=team member=a rule="rename \"none\""
`)
		time.Sleep(time.Minute)
		says("it still fails", "")
		b.set(func(f *fake) { f.refuse = nil })
		time.Sleep(5 * time.Minute)
		says("it is well", `level=INFO msg="member back" server=team member=b
level=WARN msg="name taken" server=team name=t by="a \"t\"" member=b tool=t
`)
		ssetest.Must(t, v.Replace(list, opts))
		open(t, v).request(2, "tools/list", "{}")
		says("a reload, and another client", "")
		b.set(func(f *fake) { f.refuse = errors.New("no more") })
		b.conn().end(io.EOF)
		says("it ends", `level=WARN msg="member failed" server=team member=b err=EOF
`)
	})
}

// The log names each tool that is left out for a client.
func TestToolsLeftOutAreInTheLog(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var names []string
		for i := range 41 {
			names = append(names, fmt.Sprint("t", i))
		}
		var out ssetest.Output
		v, err := compose.New(members("a", newFake(names...), "b", newFake("u")),
			compose.Options{Name: "team", For: "trae", Logger: ssetest.Logger(&out)})
		ssetest.Must(t, err)
		for range 2 {
			open(t, v).request(2, "tools/list", "{}")
		}
		synctest.Wait()
		ssetest.Want(t, "log", out.String(),
			`level=WARN msg="tools left out" server=team count=2 limit="trae takes 40 tools" tools="b__u, a__t40"`+"\n")
	})
}

// The log says, once, of which member there are too many templates.
func TestTemplatesLeftOutAreInTheLog(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var templates []string
		for i := range 1003 {
			templates = append(templates, fmt.Sprintf("x:%d/{id}", i))
		}
		a := full("a")
		a.lists["resources/templates/list"] = listOf("resourceTemplates", "uriTemplate", templates...)
		var out ssetest.Output
		v, err := compose.New(members("a", a, "b", full("b")), compose.Options{Name: "team", Logger: ssetest.Logger(&out)})
		ssetest.Must(t, err)
		for range 2 {
			open(t, v).request(2, "resources/templates/list", "{}")
		}
		synctest.Wait()
		ssetest.WantText(t, "log", out.String(), `level=WARN msg="templates left out" server=team member=a count=3 limit=1000`+"\n")
		ssetest.Want(t, "lines", strings.Count(out.String(), "templates left out"), 1)
	})
}
