package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// stacksAgree compares the threads of a process and their stacks with those of eu-stack. All threads wait.
func (s *served) stacksAgree(t *testing.T, app string, pid int) {
	t.Helper()
	var list []stack
	if err := json.Unmarshal([]byte(s.must(t, "", "stacks", app, "--json")), &list); err != nil {
		t.Fatal(err)
	}
	bare := regexp.MustCompile(`(?m)^#\d+ +0x[0-9a-f]+ ?_*(?:GI_+)?([^@\n]*).*\n`) // an address has several names
	var ours, theirs strings.Builder
	for _, s := range list {
		if s.State != "waiting" || s.Name == "" || s.Process == "" || s.Thread == "" {
			t.Errorf("%+v, want a thread that waits", s)
		}
		fmt.Fprintf(&ours, "TID %d:\n", s.TID)
		for _, frame := range s.Stack {
			name, _, _ := strings.Cut(frame, "+")
			fmt.Fprintf(&ours, "%s\n", strings.TrimLeft(name, "_"))
		}
	}
	theirs.WriteString(bare.ReplaceAllString(tells(t, "eu-stack", "-p", fmt.Sprint(pid)), "$1\n"))
	if want := fmt.Sprintf("PID %d - process\n%s", pid, ours.String()); theirs.String() != want {
		t.Errorf("the stacks are\n%s\neu-stack has\n%s", want, theirs.String())
	}
	one := list[len(list)-1]
	text := s.must(t, "", "stacks", app, "--thread", fmt.Sprint(one.TID), "--depth", "1")
	if want := fmt.Sprintf("\n%s  %d  %s  waiting\n  #0  %s\n", one.Thread, one.TID, one.Name, one.Stack[0]); !strings.HasSuffix(text, want) || strings.Contains(text, "#1") {
		t.Errorf("of one thread\n%s\nwant\n%s", text, want)
	}
	if _, errs, status := s.mirador(t, "", "stacks", app, "--thread", "nobody"); status != exitFailed || !strings.Contains(errs, `no thread "nobody"`) {
		t.Errorf("of no thread: %d, %s", status, errs)
	}
}
