package translate

import (
	"fmt"
	"strings"

	"mirador/sir"
)

// besides says where a function has code that is not measured with it, "" if it has none: users expect
// all executions to be counted.
func besides(r *region, t *Targets) string {
	first := r.copies[0]
	if first.Kind != sir.Function || first.Code != nil || t.Copies == nil {
		return ""
	}
	const most = 3
	c := t.Copies(first.module, first.Region)
	var parts []string
	least := "at"
	if c.More {
		least = "at no less than"
	}
	if c.Places > 0 {
		into := strings.Join(c.Into[:min(len(c.Into), most)], ", ")
		if more := len(c.Into) - most; more > 0 {
			into = fmt.Sprintf("%s and %d others", into, more)
		}
		parts = append(parts, fmt.Sprintf("is also inlined into %s, %s %d places", into, least, c.Places))
	}
	if len(c.Versions) > 0 {
		parts = append(parts, "has versions for certain arguments, "+strings.Join(c.Versions[:min(len(c.Versions), most)], ", "))
	}
	if len(parts) == 0 && c.More {
		parts = append(parts, "may also be inlined elsewhere")
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s: executions of that code are not measured; name %s%s to measure them too", first.ID, strings.Join(parts, ", and "), first.ID, sir.AllSuffix)
}
