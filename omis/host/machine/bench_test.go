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

// TestBenchmarksArePlausible compares the benchmarks with loops of the test. The
// tolerance is wide: it detects a wrong unit, not a slow hour. The test repeats both,
// since other processes may slow down one of them.
func TestBenchmarksArePlausible(t *testing.T) {
	var wrong []string
	for range 20 {
		if wrong = implausible(t); wrong == nil {
			return
		}
	}
	t.Errorf("even the last of several tries differs: %s", strings.Join(wrong, "\n"))
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

// fastest returns the best of a few turns, in millions per second.
func fastest(amount float64, work func()) (best float64) {
	for range 5 {
		start := time.Now()
		work()
		best = max(best, amount/time.Since(start).Seconds()/1e6)
	}
	return best
}

// additions depend on each other, like the steps of the benchmark.
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

// TestNetworkLinksAreThoseOfTheKernel compares kind and speed of each link (-1 if its
// driver knows no speed), and checks that its benchmark runs once.
func TestNetworkLinksAreThoseOfTheKernel(t *testing.T) {
	m := openMachine(t)
	list := info(t, m, groupNetwork)[1].List
	for ; len(list) > 0; list = list[4:] {
		name := linkOf(t, list[1].Str)
		if ether := strings.Contains(says(t, "ip", "link", "show", name), "link/ether"); ether != (list[0].Str == "Ethernet") {
			t.Errorf("%s has the kind %q", name, list[0].Str)
		}
		want := -1.0
		if text, err := os.ReadFile(filepath.Join("/sys/class/net", name, "speed")); err == nil && !strings.HasPrefix(string(text), "-") {
			want = field(t, string(text), "", 0) * 1000 / 8
		}
		equal(t, "bandwidth of "+name, list[2], want)
		if again := info(t, m, groupNetwork)[1].List[3]; list[3].Float != again.Float && list[1].Str == info(t, m, groupNetwork)[1].List[1].Str {
			t.Errorf("the benchmark of %s returns %v, then %v", name, list[3].Float, again.Float)
		}
	}
}

// linkOf returns the name of the link with an address.
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

// TestProcessorsAsTheKernelHasThem compares the processors; the clock rate comes from
// /proc/cpuinfo if the kernel does not know the highest one.
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
