package discovery

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// ProcessStart returns what tells the process with this PID from later ones with the
// same: the time of its start in clock ticks since the machine was started. It fails if
// there is no such process, or it has ended and only its parent has not waited for it.
func ProcessStart(pid int) (string, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", fmt.Errorf("look at process: %w", err)
	}
	return startField(data)
}

// startField returns field 22, starttime, of a line of /proc/PID/stat, unless field 3, the
// state, is that of a process that has ended; see proc(5). Field 2 is the name in
// parentheses, which may contain both spaces and parentheses.
func startField(stat []byte) (string, error) {
	const afterName = 22 - 3 // fields are counted from 1, and field 3 is the first after the name
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= afterName {
		return "", fmt.Errorf("look at process: its stat has %d fields after the name", len(fields))
	}
	if state := string(fields[0]); state == "Z" || state == "X" {
		return "", errors.New("look at process: it has ended")
	}
	return string(fields[afterName]), nil
}
