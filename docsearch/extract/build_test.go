package extract

import (
	"archive/zip"
	"bytes"
	"errors"
	"testing"
)

// buildZip returns an archive with these parts.
func buildZip(parts map[string]string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range parts {
		part, err := w.Create(name)
		if err == nil {
			_, err = part.Write([]byte(content))
		}
		if err != nil {
			panic(err) // a buffer takes all
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// buildDOCX returns a document with this body.
func buildDOCX(body string) []byte {
	return buildZip(map[string]string{"word/document.xml": wordXML(body)})
}

func wordXML(body string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>` +
		body + `</w:body></w:document>`
}

func wantReason(t testing.TB, err error, reason string) {
	t.Helper()
	if skipped, ok := errors.AsType[*SkipError](err); !ok || skipped.Reason != reason {
		t.Errorf("got %v, want a file skipped as %s", err, reason)
	}
}
