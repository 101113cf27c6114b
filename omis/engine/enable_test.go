package engine_test

import (
	"strings"
	"testing"

	"mirador/omis"
)

// TestEnableWhileProcessesEnd checks that a request is enabled for the other processes if one of them ends
// meanwhile. If there is no other process, or another error, csr_enable fails.
func TestEnableWhileProcessesEnd(t *testing.T) {
	b := start(t)
	var procs []interface{ Watches() int }
	for pid := 1; pid <= 3; pid++ {
		procs = append(procs, b.node.Add(pid, nil, 10*pid))
	}
	b.ask(`: proc_attach3([],1,"") proc_attach3([],2,"") proc_attach3([],3,"")`)
	c := b.listen("thread_reached_addr([],16) : print([1])", 0)
	errs := []error{nil, omis.Errorf(omis.UnknownObject, "process 2 has ended"), nil}
	watch := 0
	b.node.Script = func(method string) error {
		if method == "Watch" {
			watch++
			return errs[watch-1]
		}
		return nil
	}
	b.want(": csr_enable([c_1])", "0 OMIS_OK []\n1 OMIS_OK []\n")
	c.want("0 OMIS_CSR_ENABLED(4) [] c_1\n1 OMIS_OK []\n")
	if procs[0].Watches() != 1 || procs[1].Watches() != 0 || procs[2].Watches() != 1 {
		t.Error("not all processes are watched")
	}
	b.ask(": csr_disable([c_1])")
	watch, errs[2] = 0, omis.Errorf(omis.OSError, "it cannot be watched")
	if got := b.ask(": csr_enable([c_1])"); !strings.Contains(got, "1 OMIS_OS_ERROR|OMIS_FATAL") || !strings.Contains(got, "enabled for 1 of 3 processes; for p_3: it cannot be watched") {
		t.Error(got)
	}
	b.ask(": csr_disable([c_1])")
	watch, errs[0], errs[2] = 0, errs[1], errs[1]
	if got := b.ask(": csr_enable([c_1])"); !strings.Contains(got, "1 OMIS_UNKNOWN_OBJECT(24)") {
		t.Error(got)
	}
}

// TestUnknownSystemCall checks that a request for an unknown system call is refused when it is defined.
func TestUnknownSystemCall(t *testing.T) {
	b := start(t)
	b.node.Add(1, nil, 10)
	b.ask(`: proc_attach3([],1,"")`)
	for _, event := range []string{"thread_has_started_sys_call", "thread_has_ended_sys_call"} {
		b.want(event+`([p_1],"no_such_call") : print([1])`, "0 OMIS_CSR_DEFINED(2) []\n1 OMIS_PARAMETER_ERROR(28) [] \"there is no system call no_such_call\"\n")
		for _, name := range []string{"", "read"} {
			if got := b.ask(event + `([p_1],"` + name + `") : print([1])`); !strings.HasPrefix(got, "0 OMIS_CSR_DEFINED") {
				t.Error(got)
			}
		}
	}
}
