package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/tools/internal/load"
)

var verdicts = map[load.Verdict]struct {
	name string
	code int
}{
	load.Clean:    {"clean", exitClean},
	load.Faulty:   {"faulty", exitFaulty},
	load.Unproven: {"unproven", exitUnproven},
}

// text is a report for people.
func text(r *load.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", headline(r))
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("server", "%s, tool %s", r.URL, r.Tool)
	line("clients", "%d, %d calls in flight each, all with the same ids and progress tokens", r.Clients, r.InFlight)
	line("calls", "%d sent, %d answered right, %d refused", r.Calls, r.Answered, r.Refused)
	line("faults", "%s", faultList(r.Faults))
	line("also came", "%d progress, %d of a start, %d other notifications, %d requests, %d announcements", r.Progress,
		r.Starting,
		r.Notifications, r.Requests, r.Announcements)
	line("speed", "%.0f calls/s, p50 %v, p99 %v", r.PerSecond, r.P50.Round(time.Microsecond),
		r.P99.Round(time.Microsecond))
	if r.Refusal != "" {
		line("refusal", "%.300s", r.Refusal)
	}
	for _, what := range r.Evidence {
		line("evidence", "%s", what)
	}
	if rest := r.Faults.Total() - int64(len(r.Evidence)); rest > 0 {
		line("", "and %d more", rest)
	}
	return b.String()
}

// headline says what the report comes to, the worst first.
func headline(r *load.Report) string {
	leaked := r.Faults[load.Crossed] + r.Faults[load.Unmarked] + r.Faults[load.Unknown] + r.Faults[load.StrayProgress] +
		r.Faults[load.Misplaced]
	switch v := r.Verdict(); {
	case r.Faults[load.Crossed] > 0:
		return "FAULTY: clients got what belongs to others"
	case v == load.Faulty && leaked > 0:
		return "FAULTY: clients got what is not theirs"
	case v == load.Faulty:
		return "FAULTY: nothing crossed, but not every call was answered once and in time"
	case v == load.Unproven:
		return "UNPROVEN: nothing crossed, but calls were refused, so less was tested than asked"
	}
	return "CLEAN: nothing crossed, nothing was lost"
}

// faultList is all kinds of fault with their numbers.
func faultList(faults load.Faults) string {
	parts := make([]string, 0, len(faults))
	for kind, count := range faults {
		parts = append(parts, fmt.Sprintf("%s %d", load.Fault(kind), count))
	}
	return strings.Join(parts, ", ")
}
