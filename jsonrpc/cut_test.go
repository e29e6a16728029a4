package jsonrpc_test

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestCutMessageIsWhatItsEndsShow(t *testing.T) {
	const long = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" // goes over the end of the head
	answer := func(id jsonrpc.ID) jsonrpc.Cut { return jsonrpc.Cut{Kind: jsonrpc.Response, ID: id} }
	for name, tc := range map[string]struct {
		head, tail string
		want       jsonrpc.Cut
	}{
		"response, id first":                    {`{"jsonrpc":"2.0","id":5,"result":{"a":"` + long, long + `"}}`, answer("5")},
		"spaces":                                {" { \"jsonrpc\" : \"2.0\" , \"id\" : 5 ,\t\"result\" : [" + long, "]}", answer("5")},
		"error":                                 {`{"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":"` + long, `"}}`, jsonrpc.Cut{Kind: jsonrpc.Response, ID: `"a"`, Failed: true}},
		"id last":                               {`{"jsonrpc":"2.0","result":{"a":"` + long, long + `"},"id":5}`, answer("5")},
		"id last with spaces":                   {`{"jsonrpc":"2.0","result":"` + long, long + "\" , \"id\" : 5 } \r", answer("5")},
		"id before the version":                 {`{"result":"` + long, long + `","id":12,"jsonrpc":"2.0"}`, answer("12")},
		"result whole, id seen":                 {`{"result":null,"id":7,"extra":"` + long, `"}`, answer("7")},
		"no id":                                 {`{"jsonrpc":"2.0","result":"` + long, long + `"}`, answer(jsonrpc.Null)},
		"id null":                               {`{"jsonrpc":"2.0","id":null,"result":"` + long, long + `","id":5}`, answer(jsonrpc.Null)},
		"id cut off":                            {`{"result":{},"id":12`, `"}`, answer(jsonrpc.Null)},
		"id in the result":                      {`{"jsonrpc":"2.0","result":{"id":9,"x":"` + long, long + `","id":5}}`, answer(jsonrpc.Null)},
		"method in the result":                  {`{"jsonrpc":"2.0","id":3,"result":{"method":"m","params":"` + long, `"}}`, answer("3")},
		"id in a string at the end":             {`{"result":"` + long, `,\"id\":5}"}`, answer(jsonrpc.Null)},
		"id in a name at the end":               {`{"result":"` + long, `","a,\"id":5}`, answer(jsonrpc.Null)},
		"id as text at the end":                 {`{"result":"` + long, `","id":"5"}`, answer(jsonrpc.Null)},
		"escaped names":                         {`{"\u0069d":5,"\u0072esult":"` + long, `"}`, answer("5")},
		"notification":                          {`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"` + long, `"}}`, jsonrpc.Cut{Kind: jsonrpc.Notification, Method: "notifications/message"}},
		"notification, params first":            {`{"params":{"data":"` + long, `"},"method":"m","jsonrpc":"2.0"}`, jsonrpc.Cut{Kind: jsonrpc.Notification}},
		"notification with an id in its params": {`{"method":"m","params":{"id":5,"data":"` + long, `","id":5}}`, jsonrpc.Cut{Kind: jsonrpc.Notification, Method: "m"}},
		"request":                               {`{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":{"x":"` + long, `"}}`, jsonrpc.Cut{Kind: jsonrpc.Request, ID: "5", Method: "sampling/createMessage"}},
		"request, params first":                 {`{"id":5,"params":{"x":"` + long, `"},"method":"m"}`, jsonrpc.Cut{Kind: jsonrpc.Request, ID: "5"}},
		"request, id last":                      {`{"method":"m","params":{"x":"` + long, `"},"id":6}`, jsonrpc.Cut{Kind: jsonrpc.Request, ID: "6", Method: "m"}},
		"a long method":                         {`{"id":5,"method":"` + strings.Repeat("m", 2000) + `","params":"` + long, `"}`, jsonrpc.Cut{Kind: jsonrpc.Request, ID: "5"}},
		"neither call nor response":             {`{"jsonrpc":"2.0","id":5,"extra":"` + long, `"}`, jsonrpc.Cut{}},
		"both":                                  {`{"id":5,"method":"m","result":"` + long, `"}`, jsonrpc.Cut{}},
		"two ids":                               {`{"id":5,"id":6,"result":"` + long, `"}`, jsonrpc.Cut{}},
		"a batch":                               {`[{"jsonrpc":"2.0","id":5,"result":"` + long, `"}]`, jsonrpc.Cut{}},
		"no JSON":                               {long, `,"id":5}`, jsonrpc.Cut{}},
		"nothing":                               {"", "", jsonrpc.Cut{}},
		"an id that is none":                    {`{"id":{},"result":"` + long, `"}`, answer(jsonrpc.Null)},
		"a long id":                             {`{"id":"` + strings.Repeat("x", 2000) + `","result":"` + long, `"}`, answer(jsonrpc.Null)},
		"a name in capitals":                    {`{"ID":5,"result":"` + long, `"}`, answer(jsonrpc.Null)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := jsonrpc.ParseCut([]byte(tc.head), []byte(tc.tail)); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// FuzzParseCut holds ParseCut against Parse: of a valid message it says what is so, or
// less.
func FuzzParseCut(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":5,"result":{"id":6}}`, `{"jsonrpc":"2.0","result":{"x":",\"id\":7}"},"id":5}`,
		`{"result":"a,","id":12,"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","method":"m","params":{"id":5}}`,
		`{"jsonrpc":"2.0","params":[{"a":1,"id":5}],"\u006dethod":"m","id":"x"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":1}}`,
	} {
		for _, n := range []uint16{0, 9, 20, 40, 1000} {
			f.Add([]byte(seed), n, n)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, head, tail uint16) {
		got := jsonrpc.ParseCut(data[:min(len(data), int(head))], data[max(0, len(data)-int(tail)):])
		m, err := jsonrpc.Parse(data)
		if err != nil || got.Kind == jsonrpc.Invalid {
			return
		}
		hidden := m.Kind == jsonrpc.Request && got.Kind == jsonrpc.Notification && got.ID == "" || m.Kind == jsonrpc.Response && got.ID == jsonrpc.Null
		if got.Kind != m.Kind && !hidden || got.ID != m.ID && !hidden {
			t.Errorf("%q cut to %d and %d: got %+v, want %v with id %s", data, head, tail, got, m.Kind, m.ID)
		}
		if got.Method != "" && got.Method != m.Method || got.Kind == jsonrpc.Response && got.Failed != (m.Error() != nil) {
			t.Errorf("%q cut to %d and %d: got %+v, want method %q, error %s", data, head, tail, got, m.Method, m.Error())
		}
	})
}
