package client_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/client"
	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
)

func TestStartsTheDaemonOnce(t *testing.T) {
	dir := stateDir(t)
	c := newClient(t, dir, modeGood, client.Options{})
	first := mustAsk(t, c, "one")
	if second := mustAsk(t, c, "two"); second != first {
		t.Errorf("got daemons %d and %d, want one", first, second)
	}
	wantStarts(t, dir, 1)
	if info, err := os.Stat(filepath.Join(dir, "daemon.log")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("log: got %v, %v, want mode 0600", info, err)
	}
	if sid := sessionOf(t, first); sid != first {
		t.Errorf("the daemon is in session %d, want its own, %d", sid, first)
	}
}

// sessionOf returns the session of a process.
func sessionOf(t *testing.T, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	var state string
	var parent, group, session int
	rest := string(data[strings.LastIndexByte(string(data), ')')+1:])
	if _, err := fmt.Sscan(rest, &state, &parent, &group, &session); err != nil {
		t.Fatal(err)
	}
	return session
}

func TestSurvivesKillsBetweenCalls(t *testing.T) {
	dir := stateDir(t)
	c := newClient(t, dir, modeGood, client.Options{})
	const kills = 5
	for range kills {
		killDaemon(t, dir, mustAsk(t, c, "q"))
	}
	mustAsk(t, c, "q")
	wantStarts(t, dir, kills+1)
}

func TestSurvivesAKillDuringACall(t *testing.T) {
	dir := stateDir(t)
	c := newClient(t, dir, modeGood, client.Options{})
	first := mustAsk(t, c, "q")
	if second := mustAsk(t, c, dieQuery); second == first {
		t.Errorf("daemon %d answered, which died", second)
	}
	wantStarts(t, dir, 2)
}

// Each kill waits until every caller has had an answer since the kill before: a request
// may meet one kill, and not the five after which it gives up.
func TestSurvivesKillsAtAnyTime(t *testing.T) {
	dir := stateDir(t)
	c := newClient(t, dir, modeGood, client.Options{})
	mustAsk(t, c, "q")
	var wg sync.WaitGroup
	var answers [4]atomic.Int64
	stop := make(chan struct{})
	for caller := range answers {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := ask(t.Context(), c, fmt.Sprint("q", i)); err != nil {
					t.Errorf("caller %d, call %d: %v", caller, i, err)
					return
				}
				answers[caller].Add(1)
			}
		})
	}
	for range 5 {
		var before [len(answers)]int64
		for i := range answers {
			before[i] = answers[i].Load()
		}
		if record, err := discovery.Read(dir); err == nil {
			killDaemon(t, dir, record.PID)
		}
		for i := range answers {
			eventually(t, fmt.Sprintf("caller %d gets an answer", i), func() bool { return answers[i].Load() > before[i] || t.Failed() })
		}
	}
	close(stop)
	wg.Wait()
}

func TestManyCallersStartOneDaemon(t *testing.T) {
	dir := stateDir(t)
	c := newClient(t, dir, modeGood, client.Options{})
	for round := range 2 {
		pids := make([]int, 8)
		var wg sync.WaitGroup
		for i := range pids {
			wg.Go(func() {
				var err error
				if pids[i], err = ask(t.Context(), c, fmt.Sprint("q", i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		wantStarts(t, dir, round+1)
		if slices.Sort(pids); pids[0] != pids[7] {
			t.Errorf("got daemons %v, want one", pids)
		}
		killDaemon(t, dir, pids[0])
	}
}

// runClient is the main function of a client process: on a line of input, it asks 8
// times at once, and prints the PIDs of the daemons that answered.
func runClient(dir, mode string) {
	c, err := client.New(client.Options{StateDir: dir, Command: command(dir, mode)})
	if err != nil {
		panic(err)
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		answers := make([]string, 8)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() {
				pid, err := ask(context.Background(), c, fmt.Sprint("q", i))
				if answers[i] = fmt.Sprint(pid); err != nil {
					answers[i] = err.Error()
				}
			})
		}
		wg.Wait()
		_ = json.NewEncoder(os.Stdout).Encode(answers)
	}
}

func TestManyProcessesStartOneDaemon(t *testing.T) {
	dir := stateDir(t)
	var ask [3]func() []string
	for i := range ask {
		ask[i] = startClient(t, dir)
	}
	for round := range 2 {
		var all [3][]string
		var wg sync.WaitGroup
		for i := range ask {
			wg.Go(func() { all[i] = ask[i]() })
		}
		wg.Wait()
		pids := slices.Compact(slices.Sorted(slices.Values(slices.Concat(all[:]...))))
		if len(pids) != 1 {
			t.Fatalf("round %d: got answers %q, want one daemon", round, pids)
		}
		wantStarts(t, dir, round+1)
		record, err := discovery.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		killDaemon(t, dir, record.PID)
	}
}

// startClient starts a client process, and returns a function that has it ask.
func startClient(t *testing.T, dir string) func() []string {
	t.Helper()
	cmd := exec.Command(os.Args[0], clientArg, dir, modeGood)
	cmd.Stderr, cmd.Env = os.Stderr, append(os.Environ(), raceExit)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	answers := json.NewDecoder(out)
	return func() []string {
		var got []string
		if _, err := fmt.Fprintln(in, "go"); err != nil {
			t.Error(err)
		}
		if err := answers.Decode(&got); err != nil {
			t.Error(err)
		}
		return got
	}
}

func TestKillsADaemonThatHangs(t *testing.T) {
	dir := stateDir(t)
	c := newClient(t, dir, modeGood, client.Options{HangTimeout: 200 * time.Millisecond})
	hung := mustAsk(t, c, "q")
	stopDaemon(t, hung)
	if pid := mustAsk(t, c, "q"); pid == hung {
		t.Errorf("daemon %d answered, which is stopped", pid)
	}
	eventually(t, "the daemon that hung is gone", func() bool { return syscall.Kill(hung, 0) != nil })
}

func TestNewClientKillsADaemonThatHangs(t *testing.T) {
	dir := stateDir(t)
	hung := mustAsk(t, newClient(t, dir, modeGood, client.Options{}), "q")
	stopDaemon(t, hung)
	if pid := mustAsk(t, newClient(t, dir, modeGood, client.Options{HangTimeout: 200 * time.Millisecond}), "q"); pid == hung {
		t.Errorf("daemon %d answered, which is stopped", pid)
	}
}

func TestNeverKillsAReusedPID(t *testing.T) {
	dir := stateDir(t)
	bystander := exec.Command(os.Args[0], clientArg, dir, modeGood) // any process
	bystander.Env = append(os.Environ(), raceExit)
	in, _ := bystander.StdinPipe()
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = bystander.Wait() }()
	lock, err := discovery.Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Release() }()
	listener := muteListener(t)
	record := discovery.Record{Address: listener, PID: bystander.Process.Pid, ProcessStart: "1", APIVersion: 1, StartedAt: time.Now()}
	if err := lock.Publish(record); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, dir, modeGood, client.Options{HangTimeout: 50 * time.Millisecond, StartTimeout: 300 * time.Millisecond})
	_, err = ask(t.Context(), c, "q")
	wantDown(t, err, "daemon.lock")
	if err := bystander.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the bystander is gone: %v", err)
	}
	wantStarts(t, dir, 0)
}

// muteListener listens and says nothing.
func muteListener(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

func TestStaleRecordOfAnotherProgram(t *testing.T) {
	dir := stateDir(t)
	var asked bool
	other := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true })}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = other.Serve(listener) }()
	defer func() { _ = other.Close(); <-ended }()
	record := discovery.NewRecord(listener.Addr().String(), "old")
	writeRecord(t, dir, record)
	if pid := mustAsk(t, newClient(t, dir, modeGood, client.Options{}), "q"); pid == os.Getpid() {
		t.Error("the old record was used")
	}
	if asked {
		t.Error("the client asked another program")
	}
}

func writeRecord(t *testing.T, dir string, r discovery.Record) {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "daemon.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedRecord(t *testing.T) {
	dir := stateDir(t)
	if err := os.WriteFile(filepath.Join(dir, "daemon.json"), []byte(`{"addr`), 0o600); err != nil {
		t.Fatal(err)
	}
	mustAsk(t, newClient(t, dir, modeGood, client.Options{}), "q")
}

func TestWaitsForADaemonThatStarts(t *testing.T) {
	dir := stateDir(t)
	lock, err := discovery.Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, dir, modeGood, client.Options{})
	answer := make(chan error, 1)
	go func() {
		_, err := ask(t.Context(), c, "q")
		answer <- err
	}()
	eventually(t, "the client waits", func() bool {
		_, err := os.Stat(filepath.Join(dir, "start.lock"))
		return err == nil
	})
	wantStarts(t, dir, 0)
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; err != nil {
		t.Error(err)
	}
}

func TestDaemonThatCannotBeBroughtBack(t *testing.T) {
	short := client.Options{StartTimeout: 400 * time.Millisecond, HangTimeout: 100 * time.Millisecond}
	for _, tt := range []struct {
		mode  string
		words []string
	}{
		{modeExits, []string{"cannot open the index: it is a test", "exit status 3", "daemon.log"}},
		{modeHidden, []string{"not healthy within 400ms"}},
		{modeMute, []string{"not healthy within 400ms"}},
		{modeWrong, []string{"not healthy within 400ms"}},
		{modeVersion, []string{"version 99", "same version"}},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			dir := stateDir(t)
			c := newClient(t, dir, tt.mode, short)
			_, err := ask(t.Context(), c, "q")
			wantDown(t, err, tt.words...)
			wantStarts(t, dir, 1)
		})
	}
}

func TestSlowStartIsWaitedForAgain(t *testing.T) {
	dir := stateDir(t)
	goOn := closeGate(t, dir, goGate)
	c := newClient(t, dir, modeSlow, client.Options{StartTimeout: 300 * time.Millisecond})
	_, err := ask(t.Context(), c, "q")
	wantDown(t, err, "not healthy within 300ms", "try again")
	goOn()
	mustAsk(t, c, "q")
	wantStarts(t, dir, 1)
}

func TestBrokenStartIsEndedAtLast(t *testing.T) {
	dir := stateDir(t)
	c := newClient(t, dir, modeGood, client.Options{StartTimeout: 200 * time.Millisecond})
	if err := os.WriteFile(filepath.Join(dir, "mode"), []byte(modeHidden), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a call succeeds", func() bool {
		_, err := ask(t.Context(), c, "q")
		return err == nil
	})
	wantStarts(t, dir, 2)
}

func TestNextCallAfterAFailedStart(t *testing.T) {
	dir := stateDir(t)
	c := newClient(t, dir, modeGood, client.Options{})
	if err := os.WriteFile(filepath.Join(dir, "mode"), []byte(modeExits), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := ask(t.Context(), c, "q")
	wantDown(t, err)
	mustAsk(t, c, "q")
}

func TestDaemonThatDiesOfEachRequest(t *testing.T) {
	dir := stateDir(t)
	c := newClient(t, dir, modeDies, client.Options{})
	_, err := ask(t.Context(), c, "q")
	wantDown(t, err, "failed 5 times")
	wantStarts(t, dir, 5)
}

func TestProgramIsMissing(t *testing.T) {
	dir := stateDir(t)
	gone := filepath.Join(t.TempDir(), "docsearch")
	c := newClient(t, dir, "", client.Options{Command: []string{gone, "daemon"}})
	_, err := ask(t.Context(), c, "q")
	wantDown(t, err, gone, "missing", "install")
}

func TestProgramCannotRun(t *testing.T) {
	dir := stateDir(t)
	plain := filepath.Join(t.TempDir(), "docsearch")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := ask(t.Context(), newClient(t, dir, "", client.Options{Command: []string{plain}}), "q")
	wantDown(t, err, plain, "permission")
}

func TestStateDirectoryCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := ask(t.Context(), newClient(t, filepath.Join(file, "state"), modeGood, client.Options{}), "q")
	wantDown(t, err, "--state-dir")
}

func TestStateDirectoryOfAnotherUser(t *testing.T) {
	dir := "/"
	if os.Geteuid() == 0 {
		dir = t.TempDir()
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	_, err := ask(t.Context(), newClient(t, dir, modeGood, client.Options{}), "q")
	wantDown(t, err, "--state-dir")
}

func TestCloseEndsARecovery(t *testing.T) {
	dir := stateDir(t)
	c := newClient(t, dir, modeHidden, client.Options{})
	answer := make(chan error, 1)
	go func() {
		_, err := ask(t.Context(), c, "q")
		answer <- err
	}()
	eventually(t, "a daemon starts", func() bool { return len(notes(dir, "starts")) == 1 })
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	wantDown(t, <-answer, "closed")
	_, err := ask(t.Context(), c, "q")
	wantDown(t, err, "closed")
}

func TestNoStart(t *testing.T) {
	dir := stateDir(t)
	c := newClient(t, dir, modeGood, client.Options{NoStart: true})
	_, err := ask(t.Context(), c, "q")
	wantDown(t, err, "no daemon runs")
	wantStarts(t, dir, 0)
	pid := mustAsk(t, newClient(t, dir, modeGood, client.Options{}), "q")
	if got := mustAsk(t, c, "q"); got != pid {
		t.Errorf("got daemon %d, want %d", got, pid)
	}
}

func TestLogStaysShort(t *testing.T) {
	dir := stateDir(t)
	log := filepath.Join(dir, "daemon.log")
	if err := os.WriteFile(log, []byte(strings.Repeat("an old line\n", 100_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, dir, modeExits, client.Options{})
	_, err := ask(t.Context(), c, "q")
	wantDown(t, err, "cannot open the index")
	if strings.Contains(err.Error(), "old line") {
		t.Errorf("got %q, want no words of an earlier daemon", err)
	}
	data, err := os.ReadFile(log)
	if err != nil || !strings.HasPrefix(string(data), "first line") {
		t.Errorf("got %.100q, %v, want what the new daemon says", data, err)
	}
	old, err := os.ReadFile(log + ".old")
	if err != nil || len(old) != 512<<10 || !strings.HasSuffix(string(old), "an old line\n") {
		t.Errorf("daemon.log.old has %d bytes, %v, want the last 512 KiB", len(old), err)
	}
}

func TestStateErrors(t *testing.T) {
	for want, err := range map[string]error{
		"read-only": &os.PathError{Op: "open", Path: "/x", Err: syscall.EROFS},
		"full":      fmt.Errorf("open log: %w", syscall.ENOSPC),
		"another":   fmt.Errorf("/x: %w", discovery.ErrOwner),
		"strange":   errors.New("strange"),
	} {
		wantDown(t, client.StateError("/x", err), want)
	}
}
