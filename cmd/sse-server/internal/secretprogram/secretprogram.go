// Package secretprogram gets a secret from a program, such as the one of a password manager.
package secretprogram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

const (
	// timeout bounds a run of the program.
	timeout = 5 * time.Second
	// stdoutWait bounds the wait for a child of the program that keeps stdout open.
	stdoutWait = time.Second
	// maxBytes bounds what it prints.
	maxBytes = 64 << 10
)

// Read runs a program, without a shell, and returns what it prints, without space around it. Its stderr may have
// the secret, and is shown nowhere.
func Read(command []string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return read(ctx, command)
}

// read is Read until ctx ends, which ends the program, with the processes that it has started.
func read(ctx context.Context, command []string) (string, error) {
	if len(command) == 0 || command[0] == "" {
		return "", errors.New("want a program and its arguments, such as [op, read, \"op://vault/item/field\"]")
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	lead(cmd)
	cmd.WaitDelay = stdoutWait
	var printed strings.Builder
	cmd.Stdout = &limited{to: &printed, left: maxBytes + 1}
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) { // the program has succeeded, such as one that has started an agent
		ctx, err = context.Background(), nil
	}
	secret := strings.TrimSpace(printed.String())
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s has not ended within %v", command[0], timeout)
	case err != nil:
		if of, ok := errors.AsType[*exec.ExitError](err); ok {
			return "", fmt.Errorf("%s has failed: %v", command[0], of.ProcessState)
		}
		return "", fmt.Errorf("%s cannot be run: %w", command[0], cause(err))
	case printed.Len() > maxBytes:
		return "", fmt.Errorf("%s has printed over %d KiB", command[0], maxBytes>>10)
	case secret == "":
		return "", fmt.Errorf("%s has printed nothing", command[0])
	}
	return secret, nil
}

// cause returns an error without what os/exec says before it.
func cause(err error) error {
	if of, ok := errors.AsType[*exec.Error](err); ok {
		return of.Err
	}
	return err
}

// limited keeps the start of what is written.
type limited struct {
	to   io.Writer
	left int
}

func (l *limited) Write(data []byte) (int, error) {
	n := min(len(data), l.left)
	l.left -= n
	_, _ = l.to.Write(data[:n])
	return len(data), nil
}
