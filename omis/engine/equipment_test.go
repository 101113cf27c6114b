package engine_test

import (
	"errors"
	"strings"
	"testing"

	"mirador/omis/node"
)

// TestEquipment checks that "services" lists what the machine can do at present, and that requests for
// other services are refused with the reason.
func TestEquipment(t *testing.T) {
	b := start(t)
	b.node.Add(1, nil, 11)
	b.ask(`: proc_attach3([],1,"")`)
	const list = `: services("")`
	before := b.ask(list)
	b.node.LacksCRIU = errors.New("there is no CRIU")
	b.node.Lacks = map[node.EventKind]error{node.EventBlocked: errors.New("the kernel does not describe its types")}
	lacking := b.ask(list)
	for _, name := range []string{"proc_checkpoint", "proc_restore", "proc_migrate", "proc_has_been_migrated", "thread_has_blocked"} {
		if quoted := `"` + name + `"`; !strings.Contains(before, quoted) || strings.Contains(lacking, quoted) {
			t.Errorf("%s: before %s\nafter %s", name, before, lacking)
		}
	}
	for _, name := range []string{`"thread_has_been_scheduled"`, `"proc_read_memory"`} {
		if !strings.Contains(lacking, name) {
			t.Errorf("%s is missing in %s", name, lacking)
		}
	}
	b.want(`: proc_checkpoint([p_1],"x")`, "0 OMIS_UNSUPPORTED_SERVICE(20) [] \"position 2: proc_checkpoint is not supported: there is no CRIU\"\n")
	b.want(`proc_has_terminated([p_1]) : print([1]) proc_checkpoint([p_1],"x")`,
		"0 OMIS_UNSUPPORTED_SERVICE(20) [] \"position 40: proc_checkpoint is not supported: there is no CRIU\"\n")
	b.want("thread_has_blocked([p_1]) : print([1])",
		"0 OMIS_UNSUPPORTED_SERVICE(20) [] \"position 0: thread_has_blocked is not supported: the kernel does not describe its types\"\n")
	b.node.LacksCRIU = nil // as if CRIU had been installed
	if got := b.ask(list); !strings.Contains(got, `"proc_checkpoint"`) {
		t.Error(got)
	}
}
