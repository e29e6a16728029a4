package e2e

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// misbehave answers a call of the tool as its "how" says. The answer is the text
// "done", where there is one.
//
//	null       answers with the id null, and so nobody
//	late       answers after a second
//	hugenote   sends a notification of 100 MB, then answers
//	text       prints what is no JSON, then answers
//	binary     prints random bytes, then answers
//	half       prints half of the answer and ends
//	nothing    does not answer
//	stderr     prints 20 MB on stderr, half of it in one line, then answers
//	orphans    starts three processes, then answers
//	mute       closes stdout and lives on
//	flood      sends 10,000 notifications a second for 2 s, answers meanwhile
//	lines      sends 20,000 lines that are JSON but no JSON-RPC, then answers
//	frozen     reads nothing more and answers nothing more
func (f *fakeState) misbehave(m fakeMessage) {
	done := answerOf(m.ID, "done")
	switch m.Params.Arguments.How {
	case "null":
		f.out.printf("%s", answerOf(json.RawMessage("null"), "done"))
	case "late":
		time.AfterFunc(time.Second, func() { f.out.printf("%s", done) })
	case "half":
		f.out.printf("%s", done[:len(done)/2])
		os.Exit(3)
	case "nothing":
	case "flood":
		go f.flood()
		f.out.printf("%s", done)
	default:
		f.misbehaveBeside(m.Params.Arguments.How)
		f.out.printf("%s", done)
	}
}

// misbehaveBeside does what leaves the protocol alone, or ends it.
func (f *fakeState) misbehaveBeside(how string) {
	switch how {
	case "text":
		f.out.printf("Listening on stdio...\n\n   \n{\"jsonrpc\":\n[]\nnull\n\"hello\"\n")
	case "hugenote":
		f.out.printf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%s"}}`+"\n", strings.Repeat("x", 100_000_000))
	case "binary":
		noise := make([]byte, 64<<10)
		_, _ = rand.Read(noise) // it does not fail
		f.out.printf("%s\n", noise)
	case "stderr":
		line := strings.Repeat("e", 100) + "\n"
		fmt.Fprint(os.Stderr, strings.Repeat(line, 100_000), strings.Repeat("e", 10_000_000))
	case "orphans":
		for range 3 {
			if err := exec.Command("sleep", "600").Start(); err != nil {
				fmt.Fprintf(os.Stderr, "fake server: %v\n", err)
			}
		}
	case "lines":
		for n := range 20_000 {
			f.out.printf(`{"level":"info","n":%d}`+"\n", n)
		}
	case "mute":
		_ = os.Stdout.Close() // what comes after fails, and nobody sees it
	case "frozen":
		time.Sleep(10 * time.Minute)
	}
}

// flood sends notifications of three kinds, evenly spread.
func (f *fakeState) flood() {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 200 {
		<-tick.C
		for n := range 100 {
			switch n % 3 {
			case 0:
				f.out.printf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"flood"}}` + "\n")
			case 1:
				f.out.printf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"nobody's","progress":1}}` + "\n")
			default:
				f.out.printf(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://flood"}}` + "\n")
			}
		}
	}
}

func answerOf(id json.RawMessage, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%q}]}}`+"\n", id, text)
}
