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
)

// maxUnpacked is the most bytes that are read of all parts of one archive, for each byte
// of text that a document may have: markup and pictures take more than text.
const maxUnpacked = 16

// archive is a document of several parts in a zip file.
type archive struct {
	parts map[string]*zip.File
	left  int // bytes that may still be unpacked
}

var errNoPart = errors.New("no such part")

func openArchive(o order, data []byte) (*archive, error) {
	if bytes.HasPrefix(data, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")) {
		return nil, skip(ReasonEncrypted, errors.New("an OLE file, in which Office keeps documents with a password"))
	}
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, skip(ReasonDamaged, err)
	}
	a := &archive{parts: make(map[string]*zip.File), left: maxUnpacked * o.MaxText}
	for _, f := range r.File {
		a.parts[f.Name] = f
	}
	return a, nil
}

// read returns the bytes of a part. The error is errNoPart if it is not there.
func (a *archive) read(name string) ([]byte, error) {
	f := a.parts[name]
	if f == nil {
		return nil, fmt.Errorf("%w: %s", errNoPart, name)
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, int64(a.left)+1))
	if a.left -= len(data); a.left < 0 {
		return nil, skip(ReasonTooLarge, errors.New("it unpacks to more than is read"))
	}
	return data, err
}

// tokens passes the tokens of a part, which is XML, to take.
func (a *archive) tokens(name string, take func(xml.Token) error) error {
	data, err := a.read(name)
	if err != nil {
		return err
	}
	d := xml.NewDecoder(bytes.NewReader(data))
	for {
		token, err := d.RawToken() // it keeps no stack of what is open
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = take(token)
		}
		if err != nil {
			return fmt.Errorf("part %s: %w", name, err)
		}
	}
}

// elements passes the start tags of a part to take. A part that is not there has none.
func (a *archive) elements(name string, take func(xml.StartElement)) error {
	return optional(a.tokens(name, func(t xml.Token) error {
		if e, ok := t.(xml.StartElement); ok {
			take(e)
		}
		return nil
	}))
}

// optional returns err, unless it says that a part is not there.
func optional(err error) error {
	if errors.Is(err, errNoPart) {
		return nil
	}
	return err
}

// related returns the part that a relation of that kind of a part leads to, "" if there
// is none.
func (a *archive) related(part, kind string) (target string, err error) {
	dir, base := path.Split(part)
	err = a.elements(path.Join(dir, "_rels", base+".rels"), func(e xml.StartElement) {
		if e.Name.Local == "Relationship" && strings.HasSuffix(attribute(e, "Type"), "/"+kind) {
			target = attribute(e, "Target")
		}
	})
	switch {
	case target == "":
	case target[0] == '/':
		target = path.Clean(target)[1:]
	default:
		target = path.Join(dir, target)
	}
	return target, err
}

// title returns the title in a part with properties of the document.
func (a *archive) title(part string) (string, error) {
	var title strings.Builder
	inside := false
	err := a.tokens(part, func(t xml.Token) error {
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
	return title.String(), optional(err)
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
