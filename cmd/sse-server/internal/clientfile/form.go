package clientfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"github.com/mcp-sse/mcp-sse/internal/clients"
)

// form is how a file has its entries.
type form interface {
	// add returns the file with entries of servers. takes says that they may take the place of any.
	add(text []byte, servers []clients.Server, takes bool) ([]byte, did, error)
	// entry returns the text of an entry, and whether there is one.
	entry(text []byte, name string) (entry string, there bool, err error)
	// put returns the file with another text of an entry, nil for none. All else stays.
	put(text []byte, name string, entry *string) ([]byte, error)
	// same reports whether two texts of entries mean the same.
	same(a, b string) bool
}

func formOf(e *clients.Entry) form {
	switch e.Format {
	case clients.YAML:
		return inYAML{e}
	case clients.TOML:
		return inTOML{e}
	}
	return inJSON{e}
}

// inJSON has the entries in an object below a key.
type inJSON struct{ *clients.Entry }

func (j inJSON) entry(text []byte, name string) (string, bool, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return "", false, nil
	}
	all, err := hujson.Parse(text)
	if err != nil {
		return "", false, fmt.Errorf("it is not valid JSON: %w", err)
	}
	found := all.Find(pointer(j.Key, name))
	if found == nil {
		return "", false, nil
	}
	one := found.Clone()
	one.BeforeExtra, one.AfterExtra = nil, nil
	return string(one.Pack()), true, nil
}

func (j inJSON) put(text []byte, name string, entry *string) ([]byte, error) {
	all, err := hujson.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("it is not valid JSON: %w", err)
	}
	path := pointer(j.Key, name)
	if entry == nil {
		if count(all.Find("/"+j.Key), name) > 1 {
			return nil, fmt.Errorf("it has %s twice: make one of them", name)
		}
		err = all.Patch(operation("remove", path, nil))
		return all.Pack(), err
	}
	one, err := hujson.Parse([]byte(*entry))
	if err != nil {
		return nil, err
	}
	if old := all.Find(path); old != nil {
		old.Value = one.Value
		return all.Pack(), nil
	}
	err = all.Patch(patch(path, []byte(*entry)))
	return all.Pack(), err
}

func (inJSON) same(a, b string) bool {
	var was, is any
	for text, to := range map[string]*any{a: &was, b: &is} {
		plain, err := hujson.Standardize([]byte(text))
		if err != nil || json.Unmarshal(plain, to) != nil {
			return false
		}
	}
	return a == b || reflect.DeepEqual(was, is)
}

// inTOML has the entries in tables, as Codex does.
type inTOML struct{ *clients.Entry }

// find returns the lines of a file, and which of them an entry has.
func (inTOML) find(text []byte, name string) (lines []string, from, to int, err error) {
	tables, err := tablesIn(text)
	if err != nil {
		return nil, 0, 0, err
	}
	lines = strings.SplitAfter(string(text), "\n")
	if _, there := tables[name]; !there {
		return lines, len(lines), len(lines), nil
	}
	from = -1
	for i, line := range lines {
		header := strings.TrimSpace(line)
		if !strings.HasPrefix(header, "[") {
			continue
		}
		isOf := false
		for _, start := range []string{"[mcp_servers." + name, `[mcp_servers."` + name + `"`} {
			rest, ok := strings.CutPrefix(header, start)
			isOf = isOf || ok && (strings.HasPrefix(rest, "]") || strings.HasPrefix(rest, "."))
		}
		switch {
		case isOf && from < 0:
			from, to = i, len(lines)
		case !isOf && from >= 0 && to == len(lines):
			to = i
		}
	}
	if from < 0 {
		return nil, 0, 0, errNoTable
	}
	for to > from && strings.TrimSpace(lines[to-1]) == "" {
		to--
	}
	return lines, from, to, nil
}

var errNoTable = fmt.Errorf("it has the entry in a form that cannot be changed, such as { } in one line: " +
	"make it [mcp_servers.NAME], or change it by hand")

func (t inTOML) entry(text []byte, name string) (string, bool, error) {
	lines, from, to, err := t.find(text, name)
	if err != nil {
		return "", false, err
	}
	return strings.Join(lines[from:to], ""), from < to, nil
}

func (t inTOML) put(text []byte, name string, entry *string) ([]byte, error) {
	lines, from, to, err := t.find(text, name)
	if err != nil {
		return nil, err
	}
	var added []string
	if entry != nil {
		added = []string{strings.TrimRight(*entry, "\r\n") + "\n"}
	} else if from > 0 && strings.TrimSpace(lines[from-1]) == "" {
		from-- // the line that set it apart
	}
	if from == len(lines) && len(bytes.TrimSpace(text)) > 0 && entry != nil {
		added = slices.Insert(added, 0, "\n")
	}
	after := []byte(strings.Join(slices.Replace(lines, from, to, added...), ""))
	if !sameButFor(text, after, name) {
		return nil, errNoTable
	}
	return after, nil
}

// sameButFor reports whether two files in TOML say the same but for one entry.
func sameButFor(before, after []byte, name string) bool {
	var was, is map[string]any
	if toml.Unmarshal(before, &was) != nil || toml.Unmarshal(after, &is) != nil {
		return false
	}
	for _, all := range []map[string]any{was, is} {
		servers, _ := all[clients.CodexKey].(map[string]any)
		delete(servers, name)
		if len(servers) == 0 {
			delete(all, clients.CodexKey)
		}
	}
	return reflect.DeepEqual(was, is)
}

func (inTOML) same(a, b string) bool {
	var was, is any
	return a == b || toml.Unmarshal([]byte(a), &was) == nil && toml.Unmarshal([]byte(b), &is) == nil &&
		reflect.DeepEqual(was, is)
}

// inYAML has the entries in a list below a key, as Continue does.
type inYAML struct{ *clients.Entry }

// find returns a file, which of its entries has a name, below 0 if none, and the lines of that.
func (y inYAML) find(text []byte, name string) (l list, i, from, to int, err error) {
	l, err = readList(string(text), y.Key)
	if err != nil {
		return l, 0, 0, 0, err
	}
	if i, err = l.find(name); i < 0 || err != nil {
		return l, i, 0, 0, err
	}
	start := func(i int) int {
		if item, ok := l.node.Values[i].(*ast.MappingNode); ok && len(item.Values) > 0 {
			return item.Values[0].Key.GetToken().Position.Line - 1
		}
		return -1
	}
	if l.node == nil || start(i) < 0 {
		return l, i, 0, 0, errForm
	}
	from, to = start(i), l.end
	if i+1 < len(l.items) {
		if to = start(i + 1); to < 0 {
			return l, i, 0, 0, errForm
		}
	}
	for to > from+1 { // what follows is about what comes next
		if rest := strings.TrimSpace(l.lines[to-1]); rest != "" && rest[0] != '#' {
			break
		}
		to--
	}
	return l, i, from, to, nil
}

func (y inYAML) entry(text []byte, name string) (string, bool, error) {
	l, i, from, to, err := y.find(text, name)
	if err != nil || i < 0 {
		return "", false, err
	}
	return strings.Join(l.lines[from:to], ""), true, nil
}

func (y inYAML) put(text []byte, name string, entry *string) ([]byte, error) {
	l, i, from, to, err := y.find(text, name)
	if err != nil {
		return nil, err
	}
	var added []string
	wanted := slices.Clone(l.items)
	switch {
	case i < 0 && entry == nil:
		return text, nil
	case i < 0: // it is not known where it was
		return nil, fmt.Errorf("it has no server %s any more: write it by hand", name)
	case entry == nil:
		wanted = slices.Delete(wanted, i, i+1)
	default:
		added = []string{*entry}
		one, err := readList(y.Key+":\n"+*entry, y.Key)
		if err != nil || len(one.items) != 1 {
			return nil, errForm
		}
		wanted[i] = one.items[0]
	}
	after := strings.Join(slices.Replace(slices.Clone(l.lines), from, to, added...), "")
	result, err := readList(after, y.Key)
	others := func(all map[string]any) map[string]any {
		all = maps.Clone(all)
		delete(all, y.Key)
		return all
	}
	if err != nil || !reflect.DeepEqual(others(result.all), others(l.all)) || len(result.items) != len(wanted) ||
		len(wanted) > 0 && !reflect.DeepEqual(result.items, wanted) {
		return nil, errForm
	}
	return []byte(after), nil
}

func (y inYAML) same(a, b string) bool {
	was, err := readList(y.Key+":\n"+a, y.Key)
	is, wrong := readList(y.Key+":\n"+b, y.Key)
	return a == b || err == nil && wrong == nil && reflect.DeepEqual(was.items, is.items)
}

// item returns the text of an entry as the list of a file has it.
func (l list) item(text string) string {
	column := 2
	if l.node != nil {
		column = l.node.Start.Position.Column - 1
	}
	_, text, _ = strings.Cut(text+"\n", "\n") // after the line with the key
	var item strings.Builder
	for line := range strings.Lines(text) {
		item.WriteString(strings.Repeat(" ", column) + strings.TrimPrefix(line, "  "))
	}
	return strings.ReplaceAll(item.String(), "\n", l.eol)
}
