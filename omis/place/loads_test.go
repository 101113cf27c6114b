//go:build linux && amd64

package place_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis"
	"mirador/omis/monitor/rig"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
)

// loading describes what a target does while requests add values from its events, and the results.
type loading struct {
	name string
	adds []string // "event : parameter to add"; a star before the parameter adds it as an amount
	do   func(*rig.Monitor)
	want []string // for each of adds, the sorted sums of the threads
	hits []int    // for each of adds, the hits of all threads
}

const (
	sends    = `thread_has_started_sys_call([],"sendto") : $par3`
	received = `thread_has_ended_sys_call([],"recvfrom") : $par1`
	failed   = `thread_has_ended_sys_call([],"recvfrom") : $par2`
	asked    = `thread_has_ended_sys_call([],"recvfrom") : $par5`
	amounts  = `thread_has_ended_sys_call([],"recvfrom") : *$par1`
)

var loadings = []loading{
	{"amounts", []string{sends, received, failed, asked, amounts}, commands("amounts 100"), []string{"5050", "4950", "1100", "13107200", "5050"}, []int{100, 200, 200, 200, 200}},
	{"messages", []string{
		`thread_has_ended_sys_call([],"sendmmsg") : *$par7`, `thread_has_ended_sys_call([],"recvmmsg") : *$par8`, `thread_has_ended_sys_call([],"recvmmsg") : $par1`,
	}, commands("messages 20"), []string{"630", "440", "40"}, []int{20, 40, 40}},
	{"threads", []string{sends, received}, commands("crowd 6 10", "amounts 3"), []string{"6 55 66 78 91 105 120", "3 45 55 66 78 91 105"}, []int{78, 156}},
	{"disabled in between", []string{sends}, func(r *rig.Monitor) {
		r.Target.Do("amounts 4")
		r.Disable()
		r.Target.Do("amounts 4")
		r.Enable()
		r.Target.Do("amounts 4")
	}, []string{"20"}, []int{8}},
	{"reset in between", []string{sends}, func(r *rig.Monitor) {
		r.Target.Do("amounts 4")
		r.Ask(": pa_counter_reset([pa_c_1])")
		r.Target.Do("amounts 5")
	}, []string{"15"}, []int{9}},
	{"exec", []string{sends}, func(r *rig.Monitor) {
		r.Target.Do("amounts 4")
		r.Target.Tell("exec")
		r.Target.Ready()
		r.Target.Do("amounts 5")
	}, []string{"25"}, []int{9}},
	{"made again after handlers", []string{`thread_has_ended_sys_call([],"readv") : $par1`, `thread_has_ended_sys_call([],"readv") : $par5`}, commands("interrupted 7"), []string{"1", "1"}, []int{1, 1}},
	{"failed since handlers ran", []string{`thread_has_ended_sys_call([],"readv") : $par2`, `thread_has_ended_sys_call([],"readv") : $par5`}, commands("failing 5"), []string{"20", "5"}, []int{5, 5}},
	// Sums wrap around, and values that do not fit into a signed integer of 64 bits are not added.
	{"extremes", []string{
		`thread_has_ended_sys_call([],"lseek") : $par1`, `thread_has_started_sys_call([],"lseek") : $par2`,
		`thread_has_started_sys_call([],"getsid") : $par1`, `thread_has_started_sys_call([],"munmap") : $par2`,
	}, commands("extremes"), []string{"9223372036854775804", "9223372036854775800", "-3", "9223372036854775807"}, []int{4, 4, 2, 2}},
}

// TestLoads checks that values that a request adds from its events, and its hits, do not depend on the
// placement.
func TestLoads(t *testing.T) {
	program := rig.Caller(t)
	for _, l := range loadings {
		for _, placement := range []string{"trap", kernel.Name} {
			t.Run(l.name+"/"+placement, func(t *testing.T) { l.run(t, placement, program) })
		}
	}
}

func (l *loading) run(t *testing.T, placement, program string) {
	r := newRig(t, placement, rig.Start(t, program))
	for i, add := range l.adds {
		event, value, _ := strings.Cut(add, " : ")
		r.Ask(": pa_counter_create()")
		r.Define("%s : %s", event, added(i+1, value))
	}
	r.Enable()
	r.RunsIn(placement)
	l.do(r)
	for i, add := range l.adds {
		if got := sums(r, i+1); got != l.want[i] {
			t.Errorf("%s: sums %s, want %s", add, got, l.want[i])
		}
		s, err := r.Tool.Spent([]omis.Token{omis.Token(r.CSRs[i])})
		if err != nil || s.Uncounted || s.Hits != uint64(l.hits[i]) {
			t.Errorf("%s: %+v, %v; want %d hits", add, s, err, l.hits[i])
		}
	}
}

// sums returns the sorted values of a counter's rows.
func sums(r *rig.Monitor, counter int) string {
	var list []int64
	for v := r.Ask(": pa_counter_read([pa_c_%d])", counter)[1][0].Values[1].List; len(v) > 0; v = v[3:] {
		n, _ := v[2].Int64()
		list = append(list, n)
	}
	slices.Sort(list)
	return strings.Trim(fmt.Sprint(list), "[]")
}

// argumentSums returns the sum of each parameter if the function "told" is called n times, for i = 1 … n,
// with the arguments i, -i, -i in 32 bits, 10 i, 2^62, and i in 32 bits.
var argumentSums = []struct {
	param string
	of    func(n int64) int64
}{
	{"$par1", func(n int64) int64 { return n * (n + 1) / 2 }},
	{"$par2", func(n int64) int64 { return -n * (n + 1) / 2 }},
	{"$int3", func(n int64) int64 { return -n * (n + 1) / 2 }},
	{"$par4", func(n int64) int64 { return 10 * n * (n + 1) / 2 }},
	{"$par5", func(n int64) int64 { return n << 62 }}, // wraps around
	{"$int6", func(n int64) int64 { return n * (n + 1) / 2 }},
	{"*$par2", func(int64) int64 { return 0 }},
	{"*$int1", func(n int64) int64 { return n * (n + 1) / 2 }},
}

// TestLoadedArguments checks that the sums of a function's arguments do not depend on the placement, nor on
// other actions before them.
func TestLoadedArguments(t *testing.T) {
	program := rig.Scenes(t)
	for _, placement := range []string{"trap", kernel.Name, inline.Name} {
		for _, beside := range []string{"", " pa_timer_start([pa_t_1]) pa_timer_stop([pa_t_1])"} {
			t.Run(placement+beside, func(t *testing.T) {
				r := newRig(t, placement, rig.Start(t, program))
				r.Ask(": pa_timer_create()")
				var list []string
				for i, v := range argumentSums {
					r.Ask(": pa_counter_create()")
					list = append(list, added(i+1, v.param))
				}
				r.Define("thread_reached_addr([],%#x) :%s %s", r.Target.Func["told"], beside, strings.Join(list, " "))
				r.Enable()
				r.RunsIn(placement)
				r.Target.Do("tells 5")
				r.Target.Do("crowd 3 100")
				for i, v := range argumentSums {
					all := []int64{v.of(5), v.of(100), v.of(101), v.of(102)}
					slices.Sort(all)
					if got, want := sums(r, i+1), strings.Trim(fmt.Sprint(all), "[]"); got != want {
						t.Errorf("%s: sums %s, want %s", v.param, got, want)
					}
				}
				if s, err := r.Tool.Spent([]omis.Token{omis.Token(r.CSRs[0])}); err != nil || s.Uncounted || s.Hits != 308 {
					t.Errorf("%+v, %v; want 308 hits", s, err)
				}
			})
		}
	}
}

// TestProductOfArguments checks the product of two arguments, as calloc takes them, in all placements.
func TestProductOfArguments(t *testing.T) {
	program := rig.Scenes(t)
	for _, placement := range []string{"trap", kernel.Name, inline.Name} {
		t.Run(placement, func(t *testing.T) {
			r := newRig(t, placement, rig.Start(t, program))
			r.Ask(": pa_counter_create() pa_counter_create() pa_timer_create()")
			r.Define("thread_reached_addr([],%#x) : %s pa_timer_start([pa_t_1]) %s", r.Target.Func["sized"], added(1, "$product"), added(2, "*$product"))
			r.Enable()
			r.RunsIn(placement)
			r.Target.Do("sizes 4")
			const most = 1<<63 - 1 // of each four calls: the sum of 10 i, most, and -1 for four pairs; 0 × -1 is 0
			sum := int64(10 * (1 + 2 + 3 + 4))
			for range 4 {
				sum += most // wraps around
			}
			if got, want := sums(r, 2), fmt.Sprint(sum); got != want {
				t.Errorf("amounts %s, want %s", got, want)
			}
			if got, want := sums(r, 1), fmt.Sprint(sum-16); got != want {
				t.Errorf("products %s, want %s", got, want)
			}
		})
	}
}

// added returns the action that adds a parameter to a counter.
func added(counter int, param string) string {
	action := "pa_counter_add"
	if amount, ok := strings.CutPrefix(param, "*"); ok {
		action, param = "pa_counter_add_amount", amount
	}
	return fmt.Sprintf("%s([pa_c_%d],%s)", action, counter, param)
}

// TestRecordedArguments checks that records contain the arguments of a function.
func TestRecordedArguments(t *testing.T) {
	program := rig.Scenes(t)
	for _, placement := range []string{"trap", kernel.Name, inline.Name} {
		t.Run(placement, func(t *testing.T) {
			r := newRig(t, placement, rig.Start(t, program))
			r.Ask(": pa_trace_create(1000)")
			r.Define("thread_reached_addr([],%#x) : pa_trace_add2([pa_b_1],1,$par1) pa_trace_add2([pa_b_1],2,$int3)", r.Target.Func["told"])
			r.Enable()
			r.RunsIn(placement)
			r.Target.Do("tells 200")
			i := int64(0)
			for list := r.Ask(": pa_trace_read([pa_b_1],0)")[1][0].Values[2].List; len(list) > 0; list, i = list[5:], i+1 {
				mark, _ := list[3].Int64()
				value, _ := list[4].Int64()
				if n := i/2 + 1; mark != 1+i%2 || value != []int64{n, -n}[i%2] {
					t.Fatalf("record %d has the mark %d and the value %d", i, mark, value)
				}
			}
			if i != 400 {
				t.Errorf("%d records, want 400", i)
			}
		})
	}
}

// TestLoadedInside checks that programs load the same registers as the monitor inside a function, where
// code must preserve the processor's flags.
func TestLoadedInside(t *testing.T) {
	program := rig.Scenes(t)
	want := ""
	for _, placement := range []string{"trap", kernel.Name, inline.Name} {
		r := newRig(t, placement, rig.Start(t, program))
		first, err := x86asm.Decode(r.Target.Code(r.Target.Func["told"], r.Target.Size["told"]), 64)
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for i := range 6 {
			r.Ask(": pa_counter_create()")
			list = append(list, added(i+1, fmt.Sprint("$par", i+1)))
		}
		r.Define("thread_reached_addr([],%#x) : %s", r.Target.Func["told"]+uint64(first.Len), strings.Join(list, " "))
		r.Enable()
		r.RunsIn(placement)
		r.Target.Do("tells 50")
		got := ""
		for i := range list {
			got += sums(r, i+1) + ";"
		}
		if want == "" {
			want = got // by trap
		}
		if got != want || strings.HasPrefix(got, ";") {
			t.Errorf("%s: sums %s, want %s", placement, got, want)
		}
	}
}
