package extract

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

// maxUnpacked is the most bytes that are read of all parts of one archive, for each byte
// of text that a document may have: markup and pictures take more than text.
const maxUnpacked = 16

// archive is a document of several parts in a zip file. After an error it has no parts.
type archive struct {
	data  []byte
	parts map[string]*zip.File
	left  int   // bytes that may still be unpacked
	err   error // the first one
}

// inArchive returns the reader of a document that is an archive, given one of its parts.
func inArchive(
	read func(o order, a *archive, text *plain.Builder) (title string),
) func(order, []byte, *plain.Builder) (string, error) {
	return func(o order, data []byte, text *plain.Builder) (string, error) {
		if bytes.HasPrefix(data, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")) {
			return "", skip(ReasonEncrypted, errors.New("an OLE file, in which Office keeps documents with a password"))
		}
		r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return "", skip(ReasonDamaged, err)
		}
		a := &archive{data: data, parts: make(map[string]*zip.File), left: maxUnpacked * o.MaxText}
		for _, f := range r.File {
			a.parts[f.Name] = f
		}
		return read(o, a, text), a.err
	}
}

// fail ends the reading, unless err is nil.
func (a *archive) fail(err error) {
	if a.err == nil && err != nil {
		a.err = err
		clear(a.parts)
	}
}

// read returns the bytes of a part, none if it is not there.
func (a *archive) read(name string) []byte {
	f := a.parts[name]
	if f == nil {
		return nil
	}
	r, err := f.Open()
	if err != nil {
		a.fail(err)
		return nil
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, int64(a.left)+1))
	a.left -= len(data)
	if a.left < 0 {
		err = skip(ReasonTooLarge, errors.New("it unpacks to more than is read"))
	}
	a.fail(err)
	return data
}

// tokens passes the tokens of a part, which is XML, to take. A part that is not there has
// none.
func (a *archive) tokens(name string, take func(xml.Token) error) {
	d := xml.NewDecoder(bytes.NewReader(a.read(name)))
	for a.err == nil {
		token, err := d.RawToken() // it keeps no stack of what is open
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = take(token)
		}
		if err != nil {
			a.fail(fmt.Errorf("part %s: %w", name, err))
		}
	}
}

// elements passes the start tags of a part to take.
func (a *archive) elements(name string, take func(xml.StartElement)) {
	a.tokens(name, func(t xml.Token) error {
		if e, ok := t.(xml.StartElement); ok {
			take(e)
		}
		return nil
	})
}

// related returns the part that a relation of that kind of a part leads to, "" if there
// is none.
func (a *archive) related(part, kind string) (target string) {
	dir, base := path.Split(part)
	a.elements(path.Join(dir, "_rels", base+".rels"), func(e xml.StartElement) {
		if e.Name.Local == "Relationship" && strings.HasSuffix(attribute(e, "Type"), "/"+kind) {
			target = attribute(e, "Target")
		}
	})
	switch {
	case target == "":
		return ""
	case target[0] == '/':
		return path.Clean(target)[1:]
	}
	return path.Join(dir, target)
}

// title returns the title in a part with properties of the document.
func (a *archive) title(part string) string {
	var title strings.Builder
	inside := false
	a.tokens(part, func(t xml.Token) error {
		switch t := t.(type) {
		case xml.StartElement:
			inside = t.Name.Local == "title" && title.Len() == 0
		case xml.EndElement:
			inside = false
		case xml.CharData:
			if inside {
				title.Write(t)
			}
		}
		return nil
	})
	return title.String()
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
