package extract

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var smallRTF = []byte(`{\rtf1 text}`)

func TestWorkerThatMisbehaves(t *testing.T) {
	for worker, reason := range map[string]string{
		"silent":    ReasonDamaged,
		"fails":     ReasonDamaged,
		"babbles":   ReasonTimeout,
		"lies":      ReasonDamaged,
		"wanders":   ReasonDamaged,
		"overflows": ReasonDamaged,
		"deafens":   ReasonDamaged,
		"stays":     ReasonTimeout,
	} {
		t.Run(worker, func(t *testing.T) {
			t.Parallel()
			o := Options{}
			if reason == ReasonTimeout {
				o.Timeout = 300 * time.Millisecond
			}
			_, err := withWorker(t, worker, o).Extract(t.Context(), "a.rtf", smallRTF)
			wantReason(t, err, reason)
		})
	}
}

func TestWorkerErrorNamesTheFirstLineOfTheComplaint(t *testing.T) {
	_, err := withWorker(t, "fails", Options{}).Extract(t.Context(), "a.rtf", smallRTF)
	if err == nil || !strings.Contains(err.Error(), "some complaint") || strings.Contains(err.Error(), "more") {
		t.Errorf("got %v, want the first line", err)
	}
}

// However a reader fails, one place knows the reason.
func TestReasonsOfFailures(t *testing.T) {
	for words, reason := range map[string]string{
		"exit status 2\nfatal error: runtime: out of memory":                          ReasonMemory,
		"exit status 2\nruntime/cgo: pthread_create failed: Resource temporarily ...": ReasonMemory,
		"signal: killed\n":                  ReasonMemory,
		"signal: CPU time limit exceeded\n": ReasonTimeout,
		"exit status 1\nsome complaint":     ReasonDamaged,
	} {
		status, complaint, _ := strings.Cut(words, "\n")
		wantReason(t, workerError(errors.New(status), complaint), reason)
	}
	for cause, reason := range map[string]string{
		"page 3: cannot allocate memory": ReasonMemory, // of PDFium
		"page 3: not found":              ReasonDamaged,
	} {
		var out bytes.Buffer
		if err := writeReport(&out, nil, errors.New(cause)); err != nil {
			t.Fatal(err)
		}
		_, err := documentOf(TypePDF, out.Bytes())
		if wantReason(t, err, reason); !strings.Contains(err.Error(), cause) {
			t.Errorf("got %v, want %q in it", err, cause)
		}
	}
}

func TestNoWorker(t *testing.T) {
	_, err := New(Options{}).Extract(t.Context(), "a.rtf", smallRTF)
	wantReason(t, err, ReasonUnsupported)
	_, err = New(Options{Worker: []string{"/nonexistent/worker"}}).Extract(t.Context(), "a.rtf", smallRTF)
	if _, ok := errors.AsType[*SkipError](err); ok || err == nil {
		t.Errorf("a worker that is missing: got %v, want an error that says nothing of the file", err)
	}
}

func TestCancelEndsTheWorker(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := withWorker(t, "stays", Options{})
	if _, err := e.Extract(ctx, "a.rtf", smallRTF); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := e.Extract(ctx, "a.rtf", smallRTF); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestManyFilesAtOnce(t *testing.T) {
	e := withWorker(t, "worker", Options{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			doc, err := e.Extract(t.Context(), "a.rtf", smallRTF)
			if err != nil || doc.Text != "text\n" {
				t.Errorf("got %v, %v", doc, err)
			}
		})
	}
	wg.Wait()
}

// Many that time out one after the other, such as a thousand hostile ones, get little
// time, until one ends.
func TestTimeoutsInARow(t *testing.T) {
	t.Parallel()
	e := withWorker(t, "stays", Options{})
	e.timeouts.Store(rowTimeouts)
	_, err := e.Extract(t.Context(), "a.rtf", smallRTF)
	if wantReason(t, err, ReasonTimeout); err != nil && !strings.Contains(err.Error(), "longer than "+briefTimeout.String()) {
		t.Errorf("got %v, want a timeout of %v", err, briefTimeout)
	}
	e.opts.Worker[1] = "worker"
	if _, err := e.Extract(t.Context(), "a.rtf", smallRTF); err != nil || e.timeouts.Load() != 0 {
		t.Errorf("got %v, and %d timeouts in a row", err, e.timeouts.Load())
	}
}

// TestWorkerDiesWithItsParent kills a process that waits for a worker: the worker must
// not stay.
func TestWorkerDiesWithItsParent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The worker holds the write end of the pipe as its standard error until it dies.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command(self, "parent")
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	ready := make([]byte, 6)
	if _, err := r.Read(ready); err != nil || string(ready) != "ready\n" {
		t.Fatalf("the worker says %q, %v", ready, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if err := r.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(ready); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d, %v: the worker outlives its parent", n, err)
	}
}

// waitAsParent waits for a worker that inherits the standard output and never ends.
func waitAsParent() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	runtime.LockOSThread() // as runWorker does
	cmd := exec.CommandContext(context.Background(), self, "ready")
	isolate(cmd)
	cmd.Stdout = os.Stdout
	return cmd.Run()
}

func sayReady() error {
	os.Stdout.WriteString("ready\n")
	time.Sleep(time.Hour)
	return nil
}

// FuzzReport reads what a worker may write.
func FuzzReport(f *testing.F) {
	f.Add([]byte(`{"document":{"title":"a\nb","sections":[{"offset":1,"page":1,"heading":"h"}]}}` + "\nxyz"))
	f.Add([]byte(`{"document":{"sections":[{"offset":4}]}}` + "\n\ue000\u0000ü"))
	f.Add([]byte(`{"reason":"encrypted","cause":"x"}`))
	f.Add([]byte(`{"reason":"nonsense"}`))
	f.Fuzz(func(t *testing.T, output []byte) {
		if doc, err := documentOf(TypePDF, output); err == nil {
			checkDocument(t, doc)
		} else if reasonOf(err) == "" {
			t.Errorf("got %v, want a reason", err)
		}
	})
}

// FuzzOrder reads what a worker may be told.
func FuzzOrder(f *testing.F) {
	f.Add([]byte(`{"type":"pdf","maxText":1,"maxMemory":1,"timeout":1}` + "\nPDF"))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, input []byte) {
		o, data, err := readOrder(bytes.NewReader(input))
		if err == nil && (o.MaxText <= 0 || !bytes.HasSuffix(input, data)) {
			t.Errorf("read %+v, %q", o, data)
		}
	})
}
