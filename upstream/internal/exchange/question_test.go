package exchange

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestQuestionIsAskedOnceForAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Question
		var all sync.WaitGroup
		asked := 0
		ask := func(ctx context.Context) {
			asked++
			<-ctx.Done()
		}
		begin := time.Now()
		for range 10 {
			all.Go(func() {
				q.Settle(t.Context(), t.Context(), ask)
				if took := time.Since(begin); took != aliveTimeout {
					t.Errorf("settled after %s", took)
				}
			})
		}
		all.Wait()
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
		q.Settle(t.Context(), t.Context(), ask)
		if asked != 2 {
			t.Errorf("later asked %d times", asked)
		}
	})
}

func TestWaitForAQuestionEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Question
		session, end := context.WithCancel(t.Context())
		go q.Settle(t.Context(), session, func(ctx context.Context) { <-ctx.Done() })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		q.Settle(ctx, session, func(context.Context) { t.Error("asked a second time") })
		if took := time.Since(begin); took != time.Second {
			t.Errorf("waited %s", took)
		}
		end() // the session's end ends the question
		synctest.Wait()
		q.Settle(t.Context(), t.Context(), func(context.Context) {})
	})
}
