//go:build all

package e2e

import (
	"slices"
	"strings"
	"testing"
)

// A server that returns no ids, or others than it got, and one that speaks only MCP
// 2026-07-28, serve several clients that ask at the same time with the same ids, without
// any option.
func TestOddServersServeAll(t *testing.T) {
	t.Parallel()
	for odd, c := range map[string]struct {
		flags   []string
		warning string
	}{
		"none":   {[]string{"--ids", "none"}, "server answers without ids"},
		"text":   {[]string{"--ids", "text"}, "server returns ids as strings"},
		"modern": {[]string{"--modern"}, ""},
	} {
		for mode, flags := range modes() {
			t.Run(odd+"/"+mode, func(t *testing.T) {
				t.Parallel()
				g := startGateway(t, slices.Concat(flags, fake(t, c.flags...))...)
				clients := map[string]*stream{"one": openStream(t, g.url), "two": openStream(t, g.url)}
				for id := range 20 {
					for name, s := range clients {
						s.accepted(echoRequest(id, name))
					}
				}
				for name, s := range clients {
					for id := range 20 {
						assertOwn(t, s, id, name)
					}
					assertEachAnsweredOnce(t, s)
					s.close()
				}
				if n := strings.Count(g.log.String(), c.warning); c.warning != "" && n != 1 {
					t.Errorf("%d warnings %q, want 1", n, c.warning)
				}
				g.stop()
			})
		}
	}
}
