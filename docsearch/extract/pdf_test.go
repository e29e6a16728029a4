package extract

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/pdftest"
)

func TestHostilePDFIsSkipped(t *testing.T) {
	for name, tc := range pdftest.Hostile() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{MaxMemory: 128 << 20, MaxText: 64 << 10}
			if slices.Contains(tc.Reasons, ReasonTimeout) {
				o.Timeout = 300 * time.Millisecond
			}
			e := withWorker(t, "worker", o)
			doc, err := e.Extract(t.Context(), "file.pdf", tc.Data)
			skipped, ok := errors.AsType[*SkipError](err)
			if !ok || !slices.Contains(tc.Reasons, skipped.Reason) {
				t.Errorf("got %v, %v, want a reason of %q", doc, err, tc.Reasons)
			}
		})
	}
}

func TestEncryptedPDF(t *testing.T) {
	_, err := withWorker(t, "worker", Options{}).Extract(t.Context(), "a.pdf", fixture(t, "encrypted.pdf"))
	wantReason(t, err, ReasonEncrypted)
}
