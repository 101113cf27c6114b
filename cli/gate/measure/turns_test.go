package measure

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/cli/gate/request"
)

var median = request.Of{Percent: 50}

// TestDurations assigns calls to the turns in which they ended, and leaves out those that may have been
// interrupted: the first of each thread in a turn, and longer ones than the turn.
func TestDurations(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	b := block{
		clock: start.Add(-time.Hour),
		turns: []turn{{at(0), at(10)}, {at(20), at(30)}},
		found: [][]call{nil},
	}
	for _, c := range []struct {
		ms     int
		thread string
		ns     uint64
	}{{1, "a", 900}, {2, "a", 1}, {3, "b", 901}, {4, "b", 2}, {9, "a", 3}, {21, "a", 902}, {22, "a", 4}, {23, "a", 11e6}, {24, "c", 903}} {
		b.found[0] = append(b.found[0], call{at(c.ms).Sub(b.clock), c.thread, c.ns})
	}
	got := b.durations(0)
	if len(got) != 2 || len(got[0]) != 3 || got[0][0]+got[0][1]+got[0][2] != 6 || len(got[1]) != 1 || got[1][0] != 4 {
		t.Errorf("%v", got)
	}
}

// TestCompared compares programs on a machine whose speed changes by a factor of two at any time: the
// medians of whole blocks would differ by that, the turns do not.
func TestCompared(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	base, head := make([][]float64, turns), make([][]float64, turns)
	for n := range base {
		speed := 1 + float64(random.IntN(2))
		for range 30 {
			noise := 1 + 0.001*random.Float64()
			base[n], head[n] = append(base[n], 1000*speed*noise), append(head[n], 1050*speed*noise)
		}
	}
	head[2] = []float64{9000} // a turn with few calls
	head[5], base[5] = base[5], head[5]
	if p := compared(base, head, median); math.Abs(p.Ratio-math.Log(1.05)) > 0.001 || p.Base < 0.001 || p.Base > 0.0021 {
		t.Errorf("%+v", p)
	}
	if p := compared(base[3:9], head[3:9], median); !math.IsNaN(p.Ratio) {
		t.Errorf("180 calls are compared: %+v", p)
	}
}

// TestQuietest chooses the processor that was idle for longest.
func TestQuietest(t *testing.T) {
	var allowed unix.CPUSet
	for _, cpu := range []int{0, 1, 3} {
		allowed.Set(cpu)
	}
	before := map[int]int{0: 100, 1: 50, 2: 0, 3: 70}
	for _, test := range []struct {
		idle [4]int
		want int
	}{{[4]int{9, 2, 10, 3}, 0}, {[4]int{0, 10, 10, 3}, 1}, {[4]int{}, 3}} {
		after := map[int]int{}
		for cpu, n := range test.idle {
			after[cpu] = before[cpu] + n
		}
		if got := quietest(before, after, &allowed); got != test.want {
			t.Errorf("idle %v: %d, want %d", test.idle, got, test.want)
		}
	}
	if ticks := idleTicks(); len(ticks) == 0 {
		t.Error("/proc/stat lists no processor")
	}
}
