package replies

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mirador/omis"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// numbered returns a reply with a number.
func numbered(n int) omis.Reply {
	return omis.Reply{{{Status: omis.CSRTriggered, Values: []omis.Value{omis.Int(int64(n))}}}}
}

// number returns the number of a reply. It fails for a reply about lost replies.
func number(t *testing.T, e Entry) int {
	t.Helper()
	r := e.Reply[0][0]
	if r.Status != omis.CSRTriggered {
		t.Fatalf("%v: %s", r.Status, r.Msg)
	}
	return int(r.Values[0].N)
}

func next(t *testing.T, in <-chan Entry) Entry {
	t.Helper()
	select {
	case e, more := <-in:
		if !more {
			t.Fatal("the stream has ended")
		}
		if e.Reply == nil { // the entry at which the stream begins
			return next(t, in)
		}
		return e
	case <-time.After(20 * time.Second):
		t.Fatal("no reply arrived")
	}
	return Entry{}
}

// wantNumbers takes replies with the numbers from first to last, and returns the last one.
func wantNumbers(t *testing.T, in <-chan Entry, first, last int) (e Entry) {
	t.Helper()
	for want := first; want <= last; want++ {
		id := e.ID
		e = next(t, in)
		if n := number(t, e); n != want || id != 0 && e.ID != id+1 {
			t.Fatalf("reply %d with id %d, want %d with id %d", n, e.ID, want, id+1)
		}
	}
	return e
}

func fill(l *Log, first, last int) {
	for n := first; n <= last; n++ {
		l.Add(numbered(n))
	}
}

// TestSlowReader checks that a reader that is thousands of replies behind receives all of
// them.
func TestSlowReader(t *testing.T) {
	l := New(Usual)
	in, cancel := l.Stream(0)
	defer cancel()
	fill(l, 1, 20000)
	wantNumbers(t, in, 1, 20000)
}

// TestEarlyReplies checks that replies wait for a tool that has not connected yet, and that a
// second reader starts at the position of the first.
func TestEarlyReplies(t *testing.T) {
	l := New(Usual)
	fill(l, 1, 3000)
	in, cancel := l.Stream(0)
	defer cancel()
	wantNumbers(t, in, 1, 3000)
	second, cancelSecond := l.Stream(0)
	defer cancelSecond()
	fill(l, 3001, 3005)
	wantNumbers(t, in, 3001, 3005)
	wantNumbers(t, second, 3001, 3005)
}

// TestResume checks that a reader that reconnects continues after the reply that it names,
// even if another reader has read more meanwhile.
func TestResume(t *testing.T) {
	l := New(Usual)
	fill(l, 1, 100)
	in, cancel := l.Stream(0)
	e := wantNumbers(t, in, 1, 40)
	wantNumbers(t, in, 41, 60)
	cancel()
	again, cancelAgain := l.Stream(e.ID)
	defer cancelAgain()
	wantNumbers(t, again, 41, 100)
	whole, cancelWhole := l.Stream(e.ID - 40)
	defer cancelWhole()
	wantNumbers(t, whole, 1, 100)
	later, cancelLater := l.Stream(e.ID + 1000)
	defer cancelLater()
	fill(l, 101, 101)
	wantNumbers(t, later, 101, 101)
}

// TestLostAreReported checks that a reply tells how many replies were dropped.
func TestLostAreReported(t *testing.T) {
	l := New(Limits{Waiting: 10, WaitingBytes: 1 << 20, Taken: 3, TakenBytes: 1 << 20})
	fill(l, 1, 25)
	in, cancel := l.Stream(0)
	defer cancel()
	lost := func(in <-chan Entry, want string) {
		t.Helper()
		e := next(t, in)
		if r := e.Reply[0][0]; r.Status != omis.NoMemory || !strings.Contains(r.Msg, want) {
			t.Errorf("%v: %s", r.Status, r.Msg)
		}
	}
	lost(in, "15 replies were lost here")
	e := wantNumbers(t, in, 16, 25)
	cancel()
	fill(l, 26, 26)
	again, cancelAgain := l.Stream(e.ID - 9)
	defer cancelAgain()
	lost(again, "replies were lost here")
	former, cancelFormer := l.Stream(e.ID - 1000000)
	defer cancelFormer()
	lost(former, "an earlier gateway")
	bytes := New(Limits{Waiting: 1000, WaitingBytes: 10 * sizeOf(numbered(1)), Taken: 3, TakenBytes: 1 << 20})
	fill(bytes, 1, 25)
	small, cancelSmall := bytes.Stream(0)
	defer cancelSmall()
	lost(small, "15 replies were lost here")
	wantNumbers(t, small, 16, 25)
}

// TestTakenRepliesAreDropped checks that taken replies are kept only up to a limit.
func TestTakenRepliesAreDropped(t *testing.T) {
	l := New(Limits{Waiting: 1000, WaitingBytes: 1 << 20, Taken: 3, TakenBytes: 1 << 20})
	in, cancel := l.Stream(0)
	defer cancel()
	fill(l, 1, 500)
	wantNumbers(t, in, 1, 500)
	l.Add(numbered(501))
	wantNumbers(t, in, 501, 501)
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.entries); n > 5 {
		t.Errorf("%d replies are kept", n)
	}
}

// TestClosedLog checks that a reader receives the rest of a closed log, and that its stream
// then ends.
func TestClosedLog(t *testing.T) {
	l := New(Usual)
	in, cancel := l.Stream(0)
	defer cancel()
	fill(l, 1, 5000)
	l.Close()
	l.Add(numbered(7))
	wantNumbers(t, in, 1, 5000)
	if e, more := <-in; more {
		t.Errorf("one more reply: %v", e)
	}
	if l.Streams() > 0 {
		t.Error("the stream is still registered")
	}
}

// TestBegin checks that a stream begins with the number before the first reply, so that a
// reader that is interrupted before the first reply misses none.
func TestBegin(t *testing.T) {
	l := New(Usual)
	in, cancel := l.Stream(0)
	begin := <-in
	if begin.Reply != nil {
		t.Fatalf("the stream begins with the reply %v", begin.Reply)
	}
	cancel()
	fill(l, 1, 3)
	other, cancelOther := l.Stream(0)
	wantNumbers(t, other, 1, 3)
	cancelOther()
	again, cancelAgain := l.Stream(begin.ID)
	defer cancelAgain()
	wantNumbers(t, again, 1, 3)
	later := New(Usual)
	later.first, later.next, later.taken = later.first+1000, later.next+1000, later.taken+1000
	fill(later, 1, 3)
	former, cancelFormer := later.Stream(begin.ID)
	defer cancelFormer()
	if e := next(t, former); !strings.Contains(e.Reply[0][0].Msg, "an earlier gateway") {
		t.Errorf("%v", e)
	}
}
