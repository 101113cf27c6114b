//go:build linux

package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mirador/omis"
)

// The figures of the benchmarks, against loops of their own by the same measure.
// The factors are wide: they tell a wrong unit, not a slow hour. Where others have taken
// the processor from one of the two, both are tried again.
func TestBenchmarksArePlausible(t *testing.T) {
	var wrong []string
	for range 20 {
		if wrong = implausible(t); wrong == nil {
			return
		}
	}
	t.Errorf("at the last of several tries: %s", strings.Join(wrong, "\n"))
}

func implausible(t *testing.T) (wrong []string) {
	t.Helper()
	m := openMachine(t)
	cpu, mem, disk := info(t, m, groupProcessors), info(t, m, groupMemory), info(t, m, groupDisks)
	for _, c := range []struct {
		what   string
		got    omis.Value
		want   float64
		factor float64
	}{
		{"integer", cpu[4], additions(), 30},
		{"floating point", cpu[5], products(), 30},
		{"memory", mem[2], copies(), 10},
		{"disk", disk[4], writes(t), 50},
	} {
		if got := value(c.got); got < c.want/c.factor || got > c.want*c.factor {
			wrong = append(wrong, fmt.Sprintf("%s: %v, a loop of the test makes %v", c.what, got, c.want))
		}
	}
	return wrong
}

// fastest is the best of a few turns, in millions a second.
func fastest(amount float64, work func()) (best float64) {
	for range 5 {
		start := time.Now()
		work()
		best = max(best, amount/time.Since(start).Seconds()/1e6)
	}
	return best
}

// additions depend on each other, as the steps of the benchmark do.
func additions() float64 {
	const n = 2_000_000
	x := uint64(1)
	speed := fastest(n, func() {
		for i := range uint64(n) {
			x = x*2862933555777941757 + i
		}
	})
	if x == 0 {
		return 0
	}
	return speed
}

func products() float64 {
	const n = 2_000_000
	x := 1.0
	speed := fastest(2*n, func() {
		for range n {
			x = x*0.999 + 0.5
		}
	})
	if x == 0 {
		return 0
	}
	return speed
}

func copies() float64 {
	const size = 16 << 20
	from, to := make([]byte, size), make([]byte, size)
	return fastest(size, func() { copy(to, from) })
}

func writes(t *testing.T) float64 {
	t.Helper()
	file, err := os.CreateTemp("", "mirador-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	defer os.Remove(file.Name())
	const size = 4 << 20
	block := make([]byte, size)
	return fastest(size, func() {
		if _, err := file.WriteAt(block, 0); err != nil {
			t.Error(err)
		}
		if err := file.Sync(); err != nil {
			t.Error(err)
		}
	})
}

// TestNetworkLinksAreThoseOfTheKernel: kind and speed of each link, -1 where its
// driver knows no speed; its benchmark runs once.
func TestNetworkLinksAreThoseOfTheKernel(t *testing.T) {
	m := openMachine(t)
	list := info(t, m, groupNetwork)[1].List
	for ; len(list) > 0; list = list[4:] {
		name := linkOf(t, list[1].Str)
		if ether := strings.Contains(says(t, "ip", "link", "show", name), "link/ether"); ether != (list[0].Str == "Ethernet") {
			t.Errorf("%s is said to be %q", name, list[0].Str)
		}
		want := -1.0
		if text, err := os.ReadFile(filepath.Join("/sys/class/net", name, "speed")); err == nil && !strings.HasPrefix(string(text), "-") {
			want = field(t, string(text), "", 0) * 1000 / 8
		}
		equal(t, "bandwidth of "+name, list[2], want)
		if again := info(t, m, groupNetwork)[1].List[3]; list[3].Float != again.Float && list[1].Str == info(t, m, groupNetwork)[1].List[1].Str {
			t.Errorf("the benchmark of %s says %v, then %v", name, list[3].Float, again.Float)
		}
	}
}

// linkOf is the name of the link with an address.
func linkOf(t *testing.T, addr string) string {
	t.Helper()
	for line := range strings.Lines(says(t, "ip", "-o", "addr", "show")) {
		if f := strings.Fields(line); strings.HasPrefix(f[3], addr+"/") {
			return f[1]
		}
	}
	t.Fatalf("no link has %s", addr)
	return ""
}

// TestProcessorsAsTheKernelHasThem: the clock is that of /proc/cpuinfo where the
// kernel does not know the highest one.
func TestProcessorsAsTheKernelHasThem(t *testing.T) {
	m := openMachine(t)
	got := value(info(t, m, groupProcessors)[3])
	if text, err := os.ReadFile("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"); err == nil {
		near(t, "clock", got, field(t, string(text), "", 0)/1000, 1)
		return
	}
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Fatal(err)
	}
	near(t, "clock", got, field(t, string(text), "cpu MHz", 3), 1+field(t, string(text), "cpu MHz", 3)/2)
}
