package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzConfigFile loads files of any content: a fault is one line that shows no
// value of a header, and what --check-config prints of a file that is taken is
// taken too.
func FuzzConfigFile(f *testing.F) {
	for _, seed := range []string{
		"", "gate-queue: 9\nallowed-hosts: [a, \"[::1]\"]\n", "command: [npx, -y, \"a b\"]\nenv: {A: b}\n",
		"url: https://a/mcp?k=${TOKEN}\nheader:\n  Authorization: Bearer ${TOKEN}\n",
		"servers:\n  a: {demo: true, capabilities: {roots: {}}}\n  b:\n    command: [x]\n    header: {A: s3cret-0123456789}\n",
		"servers: {a: {url: \"https://a\", header: {A: \"s3cret-0123456789\"}}}\nheader: {B: s3cret-0123456789}\n",
		"servers: [a]\n", "servers:\n  a:\n    - b\n", "servers: {a: {servers: {}}}\n", "header: {A: [b]}\n", "? a\n: b\n", "servers:\n  ? {a: b}\n  : {demo: true}\n",
		"servers:\n  a: &x {demo: true}\n  b: *x\n", "forward-header: [A, b]\nurl: http://a\n", "<<: {a: b}\n", "header: {A: \"${\"}\nurl: https://${HOST}\n",
	} {
		f.Add(seed)
	}
	env := map[string]string{"TOKEN": secret, "HOST": "a.example"}
	f.Fuzz(func(t *testing.T, content string) {
		if strings.Contains(content, "file") || strings.Contains(content, "cert") || strings.Contains(content, "key") {
			return // may name files of this machine
		}
		path := filepath.Join(t.TempDir(), "gw.yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		l, faults := loadWith(t, env, "--config", path)
		for _, fault := range faults {
			if strings.Contains(fault, "\n") || strings.Contains(fault, secret) && !strings.Contains(content, secret) {
				t.Errorf("got the fault %q, want one line without the secret", fault)
			}
		}
		if len(faults) > 0 {
			return
		}
		text := l.Effective()
		if strings.Contains(text, secret) && !strings.Contains(content, secret) {
			t.Errorf("the secret is in\n%s", text)
		}
		if strings.Contains(text, "# url") || strings.Contains(text, "# env") || strings.Contains(text, "# header") {
			return // what is a comment has to be filled in
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, faults := loadWith(t, env, "--config", path); len(faults) > 0 {
			t.Errorf("got %q for\n%s", faults, text)
		}
	})
}
