package engine

import (
	"slices"
	"strings"

	"mirador/omis"
)

// LetGo resumes what the tool has suspended and continues what it has stopped, as if the tool had requested
// it, and returns the processes. What another tool has stopped too stays stopped. It is for tools that have
// vanished.
func (t *Tool) LetGo() ([]omis.Token, error) {
	var suspended, stopped []omis.Token
	for _, p := range t.processes() {
		if t.letResume(p) {
			suspended = append(suspended, p.token)
		}
		if p.halts.giveUp(t) {
			stopped = append(stopped, p.token)
		}
	}
	if stopped == nil {
		return suspended, nil
	}
	reply := t.execute(": thread_continue(["+joinTokens(stopped)+"])", &sink{}, nil)
	all := append(suspended, stopped...)
	slices.Sort(all)
	return slices.Compact(all), reply.Err()
}

// letResume resumes what the tool has suspended of a process, and reports whether there was anything.
func (t *Tool) letResume(p *process) bool {
	t.e.admin.Lock()
	defer t.e.admin.Unlock()
	return t.e.giveBack(t, p)
}

func joinTokens(list []omis.Token) string {
	return strings.Join(mapped(list, func(t omis.Token) string { return string(t) }), ",")
}
