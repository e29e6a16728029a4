package acceptance

import (
	"fmt"
	"sync"
	"testing"
)

// inParallel runs four posts at once, and returns when all are taken.
func inParallel(post func(n int)) {
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() { post(n) })
	}
	all.Wait()
}

// orders are all orders of four.
func orders() (all [][4]int) {
	for code := range 4 * 4 * 4 * 4 {
		order := [4]int{code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6}
		if 1<<order[0]|1<<order[1]|1<<order[2]|1<<order[3] == 0b1111 {
			all = append(all, order)
		}
	}
	return all
}

// meet has four calls be at the server at once, which answers them in this order, and checks
// that each is answered with its own result.
func meet(s *stream, order [4]int) {
	s.t.Helper()
	id := func(n int) string { return fmt.Sprintf(`"%d of %v"`, n, order) }
	inParallel(func(n int) {
		s.call(id(n), "meet", fmt.Sprintf(`{"text":%s,"of":4,"place":%d}`, id(n), order[n]))
	})
	for n := range 4 {
		s.wantText(id(n), fmt.Sprintf("%d of %v", n, order))
	}
}

// Four parallel calls to one server are each answered with their own result.
func TestFourParallelCallsAreEachAnsweredWithTheirOwnResult(t *testing.T) {
	t.Parallel()
	s := startGateway(t, "names answers").open("")
	meet(s, [4]int{0, 1, 2, 3})
}

// In whatever order the server answers.
func TestTheServerMayAnswerParallelCallsInAnyOrder(t *testing.T) {
	t.Parallel()
	s := startGateway(t, "names answers").open("")
	for _, order := range orders() {
		meet(s, order)
	}
}

// A response is matched by its id, also if the server returns that as a string.
func TestAResponseIsMatchedByItsID(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"names answers", "names by strings"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			s := startGateway(t, script).open("")
			s.call("1", "hang", `{}`)
			s.call("2", "echo", `{"text":"the younger"}`)
			s.wantText("2", "the younger") // the older one is still pending
		})
	}
}
