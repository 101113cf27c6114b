package service

import (
	"slices"
	"strings"
	"testing"

	"mirador/omis"
)

// chapter8 lists the services of the specification in its order.
const chapter8 = `
node_attach O node_attach2 O node_detach O node_get_info P
proc_create O proc_attach O proc_attach3 O proc_detach O proc_send_signal O proc_set_priority O
proc_write_memory R proc_write_memory_bin O proc_migrate O proc_checkpoint O proc_restore O
proc_get_info P proc_read_memory R proc_read_memory_bin O proc_get_loader_info P
proc_has_terminated R proc_has_been_stopped R proc_has_been_continued R proc_has_been_scheduled O
proc_has_been_descheduled O proc_will_be_migrated O proc_has_been_migrated O
thread_detach O thread_stop P thread_continue P thread_suspend R thread_resume R thread_send_signal O
thread_set_priority O thread_write_int_regs R thread_write_fp_regs R thread_goto O thread_call O
thread_get_info P thread_get_backtrace R thread_read_int_regs R thread_read_fp_regs R
thread_adds_node O thread_removes_node O thread_creates_proc O thread_creates_thread O
thread_has_terminated R thread_received_signal O thread_has_blocked O thread_has_been_unblocked O
thread_has_been_stopped R thread_has_been_continued R thread_has_been_scheduled O
thread_has_been_descheduled O thread_reached_addr R thread_executed_insn O thread_executed_insn_call O
thread_has_started_lib_call R thread_has_ended_lib_call R thread_has_started_sys_call O
thread_has_ended_sys_call O thread_has_received_tagged_msg O
message_insert_into_queue O message_queue_remove O message_queue_clear O message_tag O message_create O
message_copy O message_destroy O message_queue_get_info O message_queue_has_been_extended O
csr_enable R csr_disable R csr_delete R
user_event_create R user_event_raise R user_event_destroy R user_event_has_been_raised R
print R version R extensions R services R`

func TestBasicTableIsChapter8(t *testing.T) {
	var got []string
	for _, s := range Basic().Services {
		got = append(got, s.Name, string(s.Need))
	}
	if want := strings.Fields(chapter8); !slices.Equal(got, want) {
		t.Errorf("the table is\n%v\nthe specification\n%v", got, want)
	}
}

func TestRowsAreComplete(t *testing.T) {
	for _, s := range Basic().Services {
		switch {
		case s.Kind == 0, s.Need == 0, s.Role == 0, s.Support.Level == 0, s.Doc == "":
			t.Errorf("%s: a field is missing: %+v", s.Name, s)
		case s.Support.Level != Full && s.Support.Reason == "":
			t.Errorf("%s is %s without a reason", s.Name, s.Support.Level)
		case s.Object != "" && s.Subject() < 0:
			t.Errorf("%s works on %s_ but no parameter names them", s.Name, s.Object)
		case s.Kind == Event && !s.Void():
			t.Errorf("%s is an event with a result", s.Name)
		}
	}
}

// TestRowsDescribeTheLinuxImplementation checks that services that require message passing are not
// available on Linux, and that all others describe their implementation.
func TestRowsDescribeTheLinuxImplementation(t *testing.T) {
	for _, s := range Basic().Services {
		passing := s.Needs == Messages || s.Name == "thread_adds_node" || s.Name == "thread_removes_node"
		if passing == (s.Linux != "") {
			t.Errorf("%s: %q", s.Name, s.Linux)
		}
	}
}

func row(name string) Service { return Service{Name: name, Support: Support{Level: Full}} }

func TestExtensionsMustBeDisjoint(t *testing.T) {
	for name, tables := range map[string][]Table{
		"two of one prefix":     {{Prefix: "pa"}, {Prefix: "pa"}},
		"service without it":    {{Prefix: "pa", Services: []Service{row("counter")}}},
		"basic names":           {{Prefix: "proc"}},
		"no prefix":             {{}},
		"underscore":            {{Prefix: "p_a"}},
		"class without it":      {{Prefix: "pa", Classes: []omis.Class{"c"}}},
		"class of two letters":  {{Prefix: "pa", Classes: []omis.Class{"pa_cc"}}},
		"one service two times": {{Prefix: "pa", Services: []Service{row("pa_x"), row("pa_x")}}},
	} {
		if _, err := NewCatalog(tables...); err == nil {
			t.Errorf("%s: not refused", name)
		}
	}
	if _, err := NewCatalog(Table{Prefix: "pa", Services: []Service{row("pa_x")}, Classes: []omis.Class{"pa_c"}}, Table{Prefix: "pvm"}); err != nil {
		t.Error(err)
	}
}

func TestNearest(t *testing.T) {
	c, err := NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"proc_getinfo": "proc_get_info", "thread_stopp": "thread_stop", "crs_enable": "csr_enable", "quite_another_thing": "",
	} {
		if got := c.Nearest(name); got != want {
			t.Errorf("nearest to %s is %q, want %q", name, got, want)
		}
	}
}

func TestRoleOf(t *testing.T) {
	c, err := NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	call := func(names ...string) (calls []omis.Call) {
		for _, n := range names {
			calls = append(calls, omis.Call{Service: n})
		}
		return calls
	}
	event := omis.Call{Service: "proc_has_terminated"}
	for _, test := range []struct {
		request omis.Request
		role    Role
	}{
		{omis.Request{Actions: call("print", "version")}, Read},
		{omis.Request{Actions: call("print", "thread_stop")}, Control},
		{omis.Request{Actions: call("proc_create", "print")}, Debug},
		{omis.Request{Event: &event, Actions: call("print")}, Control},
	} {
		if got := c.RoleOf(&test.request); got != test.role {
			t.Errorf("%v needs %s, want %s", test.request, got, test.role)
		}
	}
}
