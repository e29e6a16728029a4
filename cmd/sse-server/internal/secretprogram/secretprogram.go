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
	// maxBytes bounds what it prints.
	maxBytes = 64 << 10
)

// Read runs a program, without a shell, and returns what it prints, without space around it. Its stderr may have
// the secret, and is shown nowhere.
func Read(command []string) (string, error) { return read(command, timeout) }

func read(command []string, timeout time.Duration) (string, error) {
	if len(command) == 0 || command[0] == "" {
		return "", errors.New("want a program and its arguments, such as [op, read, \"op://vault/item/field\"]")
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.WaitDelay = time.Second // a child of it may keep stdout
	var printed strings.Builder
	cmd.Stdout = &limited{to: &printed, left: maxBytes + 1}
	err := cmd.Run()
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
