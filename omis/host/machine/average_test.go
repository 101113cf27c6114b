//go:build linux

package machine

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// steady is a source of two counters that grow by 1000 and by 100,000 per second.
type steady struct {
	from   time.Time
	closed *int
}

func (s steady) read() ([]uint64, error) {
	ms := uint64(time.Since(s.from).Milliseconds())
	return []uint64{ms, ms * 100}, nil
}

func (s steady) Close() error {
	*s.closed++
	return nil
}

func TestAverager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened, closed := 0, 0
		a := newAverager(func() (source, error) {
			opened++
			return steady{time.Now(), &closed}, nil
		})
		ask := func(longest time.Duration) {
			t.Helper()
			start := time.Now()
			r, err := a.rates()
			if err != nil || math.Round(r[0]) != 1000 || math.Round(r[1]) != 100_000 {
				t.Errorf("rates %v, %v", r, err)
			}
			if d := time.Since(start); d > longest {
				t.Errorf("rates took %v", d)
			}
		}
		ask(least)
		for range 30 {
			time.Sleep(300 * time.Millisecond)
			ask(0)
		}
		if n := kept(a); n > int(window/least)+1 {
			t.Errorf("%d samples are kept", n)
		}
		time.Sleep(rest + 2*least)
		synctest.Wait()
		if opened != 1 || closed != 1 || kept(a) != 0 {
			t.Errorf("opened %d, closed %d times; %d samples are kept", opened, closed, kept(a))
		}
		ask(least)
		a.close()
		if _, err := a.rates(); !errors.Is(err, errClosed) || closed != 2 {
			t.Errorf("after the end: %v; closed %d times", err, closed)
		}
		a.close()
	})
}

// kept counts the samples of a running sampler.
func kept(a *averager) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running == nil {
		return 0
	}
	return len(a.running.samples)
}

func TestClosingEndsTheWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := 0
		a := newAverager(func() (source, error) { return steady{time.Now(), &closed}, nil })
		done := make(chan error)
		go func() {
			_, err := a.rates()
			done <- err
		}()
		time.Sleep(least / 2)
		a.close()
		if err := <-done; !errors.Is(err, errClosed) {
			t.Error(err)
		}
	})
}

func TestSourceThatCannotBeOpened(t *testing.T) {
	reason := errors.New("no")
	a := newAverager(func() (source, error) { return nil, reason })
	if _, err := a.rates(); err != reason {
		t.Error(err)
	}
	a.close()
}

func TestResetCounters(t *testing.T) {
	t0 := time.Now()
	r := sample{t0.Add(2 * time.Second), []uint64{10, 4}}.since(sample{t0, []uint64{4, 100}})
	if r[0] != 3 || r[1] != 2 {
		t.Error(r)
	}
}
