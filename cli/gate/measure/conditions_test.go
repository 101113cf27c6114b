package measure

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"mirador/cli/gate/request"
)

// TestConditions reads the counters of this process.
func TestConditions(t *testing.T) {
	p := &player{subject: &subject{pid: os.Getpid()}}
	before := p.conditions()
	if before.wait <= 0 {
		t.Errorf("this process has never waited: %+v", before)
	}
	if c := p.conditions().since(before); c.wait < 0 || c.involuntary < 0 || c.steal < 0 {
		t.Errorf("%+v", c)
	}
	r := &Runner{}
	if r.Weather() != "" {
		t.Error(r.Weather())
	}
	r.weather.add(conditions{wait: 20 * time.Millisecond, involuntary: 3, migrations: 2, throttled: time.Second}, 100*time.Millisecond)
	if text := r.Weather(); !strings.Contains(text, "20.0 %") || !strings.Contains(text, "for 1s") || !strings.Contains(text, "2 migrations") || strings.Contains(text, "hypervisor") {
		t.Error(text)
	}
}

// TestRules checks which blocks and starts are dropped.
func TestRules(t *testing.T) {
	mean, median := request.Limit{Metric: "WC_TIME", Of: request.Of{Mean: true}}, request.Limit{Metric: "WC_TIME", Of: request.Of{Percent: 50}}
	if !spoils(0.11, mean) || spoils(0.09, mean) || spoils(0.9, median) || spoils(0.9, request.Limit{Metric: "CPU_TIME", Of: request.Of{Mean: true}}) {
		t.Error("wrong blocks are dropped")
	}
	nan := Pair{Ratio: math.NaN()}
	half := [][]Pair{{{Ratio: 1}}, {nan}, {{Ratio: 3}}, {nan}}
	if p := joined(half, 0, 0); p.Ratio != 2 {
		t.Errorf("half of the rounds: %+v", p)
	}
	if p := joined(append(half, []Pair{nan}), 0, 0); !math.IsNaN(p.Ratio) {
		t.Errorf("less than half of the rounds: %+v", p)
	}
}
