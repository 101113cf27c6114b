//go:build linux && amd64

package place_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mirador/omis"
	"mirador/omis/place/kernel"
	"mirador/omis/place/rig"
)

// loading is something that a target does while requests add what its events tell.
type loading struct {
	name string
	adds []string // events, with what is added at each; behind a star, as an amount
	do   func(*rig.Monitor)
	want []string // the sums of the threads, by events, the smallest first
	hits []int    // of all threads, by events
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
	// Sums go round, and what is no integer with a sign of 64 bits is not added.
	{"extremes", []string{
		`thread_has_ended_sys_call([],"lseek") : $par1`, `thread_has_started_sys_call([],"lseek") : $par2`,
		`thread_has_started_sys_call([],"getsid") : $par1`, `thread_has_started_sys_call([],"munmap") : $par2`,
	}, commands("extremes"), []string{"9223372036854775804", "9223372036854775800", "-3", "9223372036854775807"}, []int{4, 4, 2, 2}},
}

// What a request adds of what its event tells does not depend on where it is executed, nor
// does how often that was.
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
		action := "pa_counter_add"
		if amount, ok := strings.CutPrefix(value, "*"); ok {
			action, value = "pa_counter_add_amount", amount
		}
		r.Define("%s : %s([pa_c_%d],%s)", event, action, i+1, value)
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

// sums are what a counter has of each thread.
func sums(r *rig.Monitor, counter int) string {
	var list []int64
	for v := r.Ask(": pa_counter_read([pa_c_%d])", counter)[1][0].Values[1].List; len(v) > 0; v = v[3:] {
		n, _ := v[2].Int64()
		list = append(list, n)
	}
	slices.Sort(list)
	return strings.Trim(fmt.Sprint(list), "[]")
}
