package clientfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/tree"
	"github.com/mcp-sse/mcp-sse/internal/clients"
)

var errForm = errors.New("it has its entries in a form that takes no other, such as [ ] in one line: " +
	"make it a list of lines with -, or write the entry by hand")

// add returns a configuration in YAML with the entries.
func (e inYAML) add(data []byte, servers []clients.Server, takes bool) (_ []byte, d did, err error) {
	text := string(data)
	for _, s := range servers {
		if text, err = e.addItem(text, s, takes, &d); err != nil {
			return nil, d, err
		}
	}
	return []byte(text), d, nil
}

// addItem adds one entry. It changes the text at the places that the parser tells: a tree that is printed has
// lost empty lines. The result is parsed and compared with the members that are wanted, whatever form the text has.
func (e inYAML) addItem(text string, s clients.Server, takes bool, d *did) (string, error) {
	before, err := readList(text, e.Key)
	if err != nil {
		return "", err
	}
	ours, err := readList(e.Text([]clients.Server{s}), e.Key)
	if err != nil {
		return "", err
	}
	item, wanted := ours.items[0].(map[string]any), slices.Clone(before.items)
	i, err := before.find(s.Name)
	if err != nil {
		return "", err
	}
	after := ""
	if i < 0 {
		wanted = append(wanted, item)
		after = before.append(e.Text([]clients.Server{s}))
	} else {
		was := before.items[i].(map[string]any)
		if more := lostOf(was, item); len(more) > 0 {
			if !takes {
				return "", fmt.Errorf("it has a server %s with %s: "+takeOver, s.Name, strings.Join(more, ", "))
			}
			d.taken = append(d.taken, s.Name)
			one := before.item(e.Text([]clients.Server{s}))
			changed, err := e.put([]byte(text), s.Name, &one)
			return string(changed), err
		}
		is := maps.Clone(was)
		maps.Copy(is, item)
		if wanted[i] = is; reflect.DeepEqual(was, is) {
			return text, nil
		}
		after = before.change(i, item)
		d.replaced = append(d.replaced, s.Name)
	}
	before.all[e.Key] = wanted
	result, err := readList(after, e.Key)
	if err != nil || !reflect.DeepEqual(result.all, before.all) {
		return "", errForm
	}
	return after, nil
}

// list is a file in YAML with the list of its entries.
type list struct {
	all   map[string]any // all that it says
	items []any          // its entries

	lines []string
	eol   string
	node  *ast.SequenceNode // nil: it has no entries
	key   int               // the index of the line with the key, below 0: it is missing
	end   int               // the index of the line with the next key
}

// readList reads a file, whose list is at key.
func readList(text, key string) (l list, err error) {
	root, err := tree.Parse([]byte(text))
	if wrong, ok := errors.AsType[*tree.Error](err); ok && wrong.Place != nil {
		return l, fmt.Errorf("it is not valid YAML: line %d: %s", wrong.Place.Position.Line, wrong.Text)
	}
	if err == nil {
		err = yaml.Unmarshal([]byte(text), &l.all)
	}
	if wrong, ok := errors.AsType[yaml.Error](err); ok { // its whole text has an excerpt, which may show a secret
		message, _, _ := strings.Cut(wrong.GetMessage(), `: "`)
		err = errors.New(message)
	}
	if err != nil {
		return l, fmt.Errorf("it is not valid YAML: %w", err)
	}
	if l.all == nil {
		l.all = map[string]any{}
	}
	l.eol = "\n"
	if strings.Contains(text, "\r\n") {
		l.eol = "\r\n"
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += l.eol
	}
	l.lines = strings.SplitAfter(text, "\n")
	l.key, l.end = -1, len(l.lines)
	items, isList := l.all[key].([]any)
	if !isList && l.all[key] != nil {
		return l, fmt.Errorf("its %s are not a list", key)
	}
	l.items = items
	members, _ := tree.Members(root)
	for _, member := range members {
		line := member.Key.GetToken().Position.Line - 1
		if member.Key.GetToken().Value == key {
			l.key = line
			l.node, _ = member.Value.(*ast.SequenceNode)
		} else if l.key >= 0 && l.end == len(l.lines) {
			l.end = line
		}
	}
	return l, nil
}

// find returns the place of the entry with a name, below 0 if there is none.
func (l list) find(name string) (at int, err error) {
	at = -1
	for i, item := range l.items {
		if of, ok := item.(map[string]any); ok && of["name"] == name {
			if at >= 0 {
				return 0, fmt.Errorf("it has %s twice: make one of them", name)
			}
			at = i
		}
	}
	return at, nil
}

// append returns the file with an entry at the end of its list. text is a file that has it alone.
func (l list) append(text string) string {
	added := strings.SplitAfter(strings.ReplaceAll(text+"\n", "\n", l.eol), "\n")
	added = added[:len(added)-1]
	if l.key < 0 {
		if len(l.lines) > 1 {
			added = slices.Insert(added, 0, l.eol)
		}
		return strings.Join(append(l.lines, added...), "")
	}
	added, column, at := added[1:], 2, l.key+1
	if len(l.items) == 0 {
		l.lines[l.key] = strings.Replace(l.lines[l.key], ": []", ":", 1)
	} else if l.node != nil {
		column = l.node.Start.Position.Column - 1
		// A comment after the last entry, which is not below it, is about the text that follows.
		for at = l.end; at > l.key+1; at-- {
			rest := strings.TrimSpace(l.lines[at-1])
			if rest != "" && (rest[0] != '#' || strings.Index(l.lines[at-1], "#") > column) {
				break
			}
		}
	}
	for i := range added {
		added[i] = strings.Repeat(" ", column) + strings.TrimPrefix(added[i], "  ")
	}
	return strings.Join(slices.Insert(l.lines, at, added...), "")
}

// change returns the file with other members of an entry. Members that are missing come below its name.
func (l list) change(i int, members map[string]any) string {
	was, _ := l.items[i].(map[string]any)
	var item *ast.MappingNode
	if l.node != nil {
		item, _ = l.node.Values[i].(*ast.MappingNode)
	}
	if item == nil {
		return ""
	}
	missing := maps.Clone(members)
	below, column := 0, 0
	for _, member := range slices.Backward(item.Values) { // what stands before in the line stays where it is
		key, old := member.Key.GetToken(), member.Value.GetToken()
		delete(missing, key.Value)
		if key.Value == "name" {
			below, column = key.Position.Line, key.Position.Column-1
		}
		if is, ours := members[key.Value]; !ours || reflect.DeepEqual(was[key.Value], is) {
			continue
		}
		line := []rune(l.lines[old.Position.Line-1])
		start := string(line[:old.Position.Column-1])
		rest, isThere := strings.CutPrefix(string(line[old.Position.Column-1:]), strings.TrimSpace(old.Origin))
		if !isThere {
			return ""
		}
		l.lines[old.Position.Line-1] = start + strings.TrimSpace(yamlOf(members[key.Value])) + rest
	}
	var added []string
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		for line := range strings.Lines(yamlOf(map[string]any{name: missing[name]})) {
			added = append(added, strings.Repeat(" ", column)+strings.TrimSuffix(line, "\n")+l.eol)
		}
	}
	return strings.Join(slices.Insert(l.lines, below, added...), "")
}

// yamlOf returns a value of an entry in YAML.
func yamlOf(value any) string {
	text, _ := yaml.Marshal(value) // texts, and mappings of them
	return string(text)
}

// lostOf returns what would be lost of an entry, as compare does.
func lostOf(was, is map[string]any) []string {
	old, err := json.Marshal(was)
	if err != nil {
		return []string{"what is not an entry"}
	}
	ours, _ := json.Marshal(is) // texts, and mappings of them
	_, lost := compare(old, ours)
	return lost
}
