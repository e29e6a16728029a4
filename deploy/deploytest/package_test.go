//go:build deploy

package deploytest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// releaseVersion is the version of the release that the tests make.
const releaseVersion = "0.98.7"

// targets are the systems to release for: this one, or all, which takes an hour on a small
// machine, if the environment variable is set.
var targets = func() []string {
	if os.Getenv("ALL_TARGETS") == "" {
		return []string{"linux_" + runtime.GOARCH}
	}
	return []string{"darwin_amd64", "darwin_arm64", "linux_amd64", "linux_arm64", "windows_amd64", "windows_arm64"}
}()

// releaseOnce makes a release of what is committed, as the workflow does, and publishes
// nothing.
var releaseOnce = sync.OnceValues(func() (printed []byte, err error) {
	return exec.Command("sh", "-euc", `
		git clone -q `+root+` "$0"
		cd "$0"
		git tag v`+releaseVersion+` && git tag docsearch/v`+releaseVersion+`
		export GOFLAGS= GORELEASER_CURRENT_TAG=v`+releaseVersion+` NPM_PACKAGE=mcp-sse
		go run `+goreleaser+` check
		config=.goreleaser.yaml
		if [ -z "${ALL_TARGETS-}" ]; then
			config=../this.yaml
			sed -e 's/^    goos: .*/    goos: [linux]/' -e 's/^    goarch: .*/    goarch: ['`+runtime.GOARCH+`']/' .goreleaser.yaml >$config
		fi
		go run `+goreleaser+` release --config $config --clean --skip=publish
	`, filepath.Join(binDir, "release")).CombinedOutput()
})

// release returns the folder with the files of a release.
func release(t *testing.T) string {
	t.Helper()
	if printed, err := releaseOnce(); err != nil {
		t.Fatalf("goreleaser: %v\n%s", err, printed)
	}
	return filepath.Join(binDir, "release", "dist")
}

// A release has both programs for each system, packages, bills of materials and checksums.
func TestRelease(t *testing.T) {
	t.Parallel()
	dist := release(t)
	want := []string{"SHA256SUMS"}
	rpmArch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}
	for _, program := range []string{"docsearch", "sse-server"} {
		for _, target := range targets {
			system, arch, _ := strings.Cut(target, "_")
			name, archive := fmt.Sprintf("%s_%s_%s", program, releaseVersion, target), ".tar.gz"
			switch system {
			case "windows":
				archive = ".zip"
			case "linux":
				want = append(want, fmt.Sprintf("%s_%s_%s.deb", program, releaseVersion, arch), fmt.Sprintf("%s-%s-1.%s.rpm", program, releaseVersion, rpmArch[arch]))
			}
			want = append(want, name+archive, name+".cdx.json")
		}
	}
	for _, name := range want {
		if info, err := os.Stat(filepath.Join(dist, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	run(t, "sh", "-euc", `cd "$0" && sha256sum --check --strict SHA256SUMS`, dist)

	for _, program := range []string{"docsearch", "sse-server"} {
		name := filepath.Join(dist, fmt.Sprintf("%s_%s_linux_%s", program, releaseVersion, runtime.GOARCH))
		dir := t.TempDir()
		run(t, "tar", "-xf", name+".tar.gz", "-C", dir)
		if version := run(t, filepath.Join(dir, program), "--version"); !strings.HasPrefix(version, program+" v"+releaseVersion+"\n") {
			t.Errorf("%s --version: %s", program, version)
		}
		if modules := readAll(t, name+".cdx.json"); !strings.Contains(modules, "pkg:golang/github.com/alecthomas/kong@v") {
			t.Errorf("%s has no modules in its bill of materials: %s", program, modules)
		}
	}
}

// On a small Debian, the packages enable no unit, a removal leaves nothing but the
// configuration, and a purge nothing.
func TestDebianPackage(t *testing.T) {
	t.Parallel()
	system := debian(t)
	before := system.files()
	system.install("sse-server", "docsearch")

	if printed := system.run("systemd-analyze", "verify", "sse-server.service", "sse-server.socket"); printed != "" {
		t.Errorf("systemd-analyze verify: %s", printed)
	}
	if state := system.run("sh", "-c", "systemctl --root=/ is-enabled sse-server.service sse-server.socket || :"); state != "disabled\ndisabled\n" {
		t.Errorf("the units are %s", state)
	}
	writeFile(t, filepath.Join(system.root, "etc/sse-server/tokens"), "alice:secret")
	system.run("dpkg", "--remove", "sse-server", "docsearch")
	if left := added(before, system.files()); !slices.Equal(left, []string{"/etc/sse-server", "/etc/sse-server/config.yaml", "/etc/sse-server/tokens"}) {
		t.Errorf("the removal left %v", left)
	}
	system.run("dpkg", "--purge", "sse-server", "docsearch")
	if left := added(before, system.files()); len(left) > 0 {
		t.Errorf("the purge left %v", left)
	}
}

// Under systemd, the package starts nothing by itself; an upgrade restarts what runs, and a
// removal stops it.
func TestDebianPackageUnderSystemd(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	run(t, "cp", filepath.Join(release(t), fmt.Sprintf("sse-server_%s_%s.deb", releaseVersion, runtime.GOARCH)), filepath.Join(work, "sse-server.deb"))
	writeFile(t, filepath.Join(work, "driver"), `
trap 'systemctl status --no-pager sse-server; journalctl --no-pager -n 50 -u sse-server' ERR
cd /srv/work
ask() {
	curl -sS --fail-with-body http://127.0.0.1:8080/mcp -H 'Content-Type: application/json' \
		-d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' | grep -o '"name":"echo"'
}
dpkg -i sse-server.deb
test "$(systemctl is-active sse-server.socket sse-server | sort -u)" = inactive
systemctl enable --now sse-server.socket sse-server
ask
pid=$(systemctl show -P MainPID sse-server)
echo '# edited' >>/etc/sse-server/config.yaml
systemctl reload sse-server
test "$(systemctl show -P MainPID sse-server)" = "$pid"

dpkg-deb -R sse-server.deb later
sed -i 's/^Version: .*/&+1/' later/DEBIAN/control
dpkg-deb -b later later.deb
dpkg -i later.deb
ask
test "$(systemctl show -P MainPID sse-server)" != "$pid"
grep edited /etc/sse-server/config.yaml
systemctl is-enabled sse-server.socket sse-server

dpkg -r sse-server
test "$(systemctl is-active sse-server.socket sse-server | sort -u)" = inactive
test -z "$(pgrep -x sse-server)"
dpkg -P sse-server
test ! -e /var/lib/private/sse-server
echo walked
`)
	boot(t, work)
	if log := readAll(t, filepath.Join(work, "log")); !strings.Contains(log, "\nwalked\n") {
		t.Error(log)
	}
}

// debianSystem is a small Debian in a folder, in which systemd does not run.
type debianSystem struct {
	t    *testing.T
	root string
}

func debian(t *testing.T) *debianSystem {
	t.Helper()
	s := &debianSystem{t, t.TempDir()}
	run(t, installed(t, "debootstrap"), "--variant=minbase", "--include=procps,systemd", "bookworm", s.root)
	return s
}

// run runs a program of the system.
func (s *debianSystem) run(command ...string) string {
	s.t.Helper()
	return run(s.t, append([]string{installed(s.t, "chroot"), s.root}, command...)...)
}

// install installs packages of the release.
func (s *debianSystem) install(names ...string) {
	s.t.Helper()
	for _, name := range names {
		file := fmt.Sprintf("%s_%s_%s.deb", name, releaseVersion, runtime.GOARCH)
		run(s.t, "cp", filepath.Join(release(s.t), file), filepath.Join(s.root, "tmp", name+".deb"))
		s.run("dpkg", "--install", "/tmp/"+name+".deb")
	}
}

// files returns the files of the system, without what programs write down.
func (s *debianSystem) files() []string {
	s.t.Helper()
	return strings.Fields(s.run("find", "/", "-xdev", "(", "-path", "/tmp", "-o", "-path", "/proc", "-o", "-path", "/run", "-o", "-path", "/var/lib/dpkg", "-o", "-path", "/var/log", ")", "-prune", "-o", "-print"))
}

// added returns what is in all and not in before.
func added(before, all []string) []string {
	return slices.DeleteFunc(slices.Sorted(slices.Values(all)), func(name string) bool { return slices.Contains(before, name) })
}

// Man pages and completions know each flag and command, because they come from the programs.
func TestFlagsAreDocumented(t *testing.T) {
	t.Parallel()
	dist := release(t)
	dir := t.TempDir()
	for _, program := range []string{"docsearch", "sse-server"} {
		run(t, "tar", "-xf", filepath.Join(dist, fmt.Sprintf("%s_%s_linux_%s.tar.gz", program, releaseVersion, runtime.GOARCH)), "-C", dir)
	}
	for _, command := range [][]string{{"sse-server"}, {"docsearch"}, {"docsearch", "search"}, {"docsearch", "daemon"}} {
		program := filepath.Join(dir, command[0])
		helpFlag := "--help"
		if command[0] == "sse-server" {
			helpFlag = "--help-all"
		}
		help := run(t, append(append([]string{program}, command[1:]...), helpFlag)...)
		page := run(t, installed(t, "man"), "--encoding=ascii", "--local-file", filepath.Join(dir, "man", strings.Join(command, "-")+".1.gz"))
		var flags []string
		for _, match := range regexp.MustCompile(`(?m)^ {2}(?: {4}|-\w, )?--(\[no-\])?([a-z-]+)`).FindAllStringSubmatch(help, -1) {
			if flags = append(flags, "--"+match[2]); match[1] != "" {
				flags = append(flags, "--no-"+match[2])
			}
			if flag := "--" + match[1] + match[2]; !strings.Contains(page, flag) {
				t.Errorf("%s is not on the man page:\n%s", flag, page)
			}
		}
		if slices.Sort(flags); len(flags) < 2 {
			t.Fatalf("%v: flags %v in the help", command, flags)
		}
		wantCompletion(t, dir, strings.Join(command, " ")+" --", flags)
	}
	wantCompletion(t, dir, "sse-server --log-level w", []string{"warn"})
	wantCompletion(t, dir, "sse-server connect cur", []string{"curl", "cursor"})
	wantCompletion(t, dir, "sse-server check --for clau", []string{"claude-code", "claude-desktop"})
	wantCompletion(t, dir, "sse-server completion z", []string{"zsh"})
}

// wantCompletion checks to what each shell completes a line, with the programs and the completions in dir.
func wantCompletion(t *testing.T, dir, line string, want []string) {
	t.Helper()
	for shell, script := range map[string]string{
		"bash": `. "$1/mcp-sse.bash"; COMP_WORDS=($2); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _mcp_sse "${COMP_WORDS[0]}" "${COMP_WORDS[-1]}"; printf '%s\n' "${COMPREPLY[@]}"`,
		"zsh":  `compdef() {}; . $1/_mcp-sse; (){ local -a words=(${=1}); local CURRENT=$#words PREFIX=$words[-1]; compadd() { shift; print -l -- ${(M)@:#$PREFIX*} }; _mcp_sse } $2`,
		"fish": `. $argv[1]/mcp-sse.fish; complete -C "$argv[2]" | string replace -r '\t.*' ''; true`,
	} {
		args := []string{"-c", script, shell, filepath.Join(dir, "completions"), line}
		if shell == "fish" {
			args = slices.Delete(args, 2, 3) // its $argv has no name of the script
		}
		cmd := exec.Command(installed(t, shell), args...)
		cmd.Dir = t.TempDir() // fish offers files too
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		printed, err := cmd.CombinedOutput()
		if got := slices.Sorted(slices.Values(strings.Fields(string(printed)))); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s completes %q to %v, want %v (%v)", shell, line, got, want, err)
		}
	}
}
