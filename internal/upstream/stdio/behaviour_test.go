//go:build unix

package stdio_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// The environment of a child process: how it behaves, and a named pipe whose
// other end tells the test who is still alive.
const (
	behaviourEnv = "UPSTREAM_TEST_BEHAVIOUR"
	fifoEnv      = "UPSTREAM_TEST_FIFO"
)

const helloLine = `{"jsonrpc":"2.0","method":"hello"}`

// behave is the main function of a child process; it returns the exit status.
func behave(name string) int {
	run, ok := behaviours()[name]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such behaviour:", name)
		return 99
	}
	return run()
}

func behaviours() map[string]func() int {
	return map[string]func() int{
		"echo":         echoStdin,
		"ignore-eof":   func() int { fmt.Println(helloLine); return block() },
		"ignore-term":  func() int { signal.Ignore(syscall.SIGTERM); fmt.Println(helloLine); return block() },
		"garbage":      garbage,
		"output":       func() int { fmt.Print(os.Getenv("OUTPUT")); return 0 },
		"writes":       writes,
		"talk":         func() int { fmt.Println("Hello"); return 0 },
		"talk-first":   func() int { fmt.Println("Hello"); return echoStdin() },
		"flood":        flood,
		"never-read":   block,
		"exit-7":       func() int { fmt.Fprintln(os.Stderr, "cannot find module"); return 7 },
		"hello-exit-7": func() int { fmt.Println(helloLine); fmt.Fprintln(os.Stderr, "out of memory"); return 7 },
		"exit-0":       func() int { fmt.Fprintln(os.Stderr, "usage: server [flags]"); return 0 },
		"kill-self":    func() int { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); return block() },
		"close-stdout": func() int { fmt.Println(helloLine); os.Stdout.Close(); _, _ = io.Copy(io.Discard, os.Stdin); return 0 },
		"close-stdin":  func() int { os.Stdin.Close(); fmt.Println(helloLine); return block() },
		"talk-at-eof":  talkAtEOF,
		"grandchild":   func() int { return fork("ignore-term", false) },
		"daemon":       func() int { return fork("hold", true) },
		"hold":         func() int { _, _ = os.ReadFile(os.Getenv(fifoEnv)); return 0 },
		"environment":  func() int { d, _ := os.Getwd(); fmt.Printf("{\"jsonrpc\":[%q,%q]}", d, os.Getenv("A")); return 0 },
		"arguments":    func() int { fmt.Printf("{\"jsonrpc\":%q}\n", strings.Join(os.Args[1:], ",")); return 0 },
	}
}

// block waits for a signal that ends the process.
func block() int {
	never := make(chan os.Signal, 1)
	signal.Notify(never, syscall.SIGUSR1)
	<-never
	return 0
}

func readLine() { _, _ = bufio.NewReader(os.Stdin).ReadString('\n') }

func echoStdin() int {
	_, _ = io.Copy(os.Stdout, os.Stdin)
	return 0
}

// writes writes to stdout, then to stderr, and reads its stdin.
func writes() int {
	fmt.Print(os.Getenv("OUTPUT"))
	fmt.Fprintln(os.Stderr, "Error: it has written")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func garbage() int {
	fmt.Print("Server listening on stdio\n\n\r\n  \n", helloLine, "\r\n", "npm WARN \x00\xff\n",
		"{\"jsonrpc\":\"a\xffb\"}\n", "[1]\n", "true\n", "  {\"jsonrpc\":1}  \n", `{"half":`)
	return 0
}

// flood writes far more to stderr than a pipe holds, then answers.
func flood() int {
	line := strings.Repeat("x", 99) + "\n"
	for range 10_000 {
		fmt.Fprint(os.Stderr, line)
	}
	fmt.Fprint(os.Stderr, strings.Repeat("y", 100_000), "\nlast words\n")
	return echoStdin()
}

// talkAtEOF writes more than a pipe holds when it is told to end.
func talkAtEOF() int {
	_, _ = io.Copy(io.Discard, os.Stdin)
	fmt.Print(strings.Repeat(helloLine+"\n", 10_000))
	return 0
}

// mark opens the named pipe for writing and says so in it: its reader sees the
// end when the last process that holds it is gone.
func mark() *os.File {
	f, err := os.OpenFile(os.Getenv(fifoEnv), os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("x")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(98)
	}
	return f
}

// fork leaves a process behind that holds stdout, stderr and, in the same
// session, the named pipe.
func fork(behaviour string, newSession bool) int {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), behaviourEnv+"="+behaviour)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: newSession}
	if !newSession {
		cmd.ExtraFiles = []*os.File{mark()}
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 97
	}
	if newSession {
		fmt.Println(helloLine)
	} else {
		readLine() // the grandchild says hello
	}
	return 0
}
