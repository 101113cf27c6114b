package sir

import "strings"

// Placements says where the places of a region can have probes. Regions share it, so nothing modifies it.
type Placements struct {
	// Counted are the placements in which the region can be counted, the cheapest first. Timed are those in
	// which it can be timed, too.
	Counted, Timed []string
	// Refusals say why the other placements cannot.
	Refusals []Refusal
	// Uncounted and Untimed say why a unit cannot be counted or timed in any placement, "" if it can. A code
	// region has them in its Code.
	Uncounted, Untimed string
}

// Refusal is the reason why a placement cannot measure a region.
type Refusal struct {
	Placement string
	Of        Measure
	Address   uint64 // the place that is the reason, in the file
	Reason    string
}

// Measure is what a placement refuses.
type Measure string

// The measures. A region that cannot be counted cannot be timed either.
const (
	OfCount Measure = "count"
	OfTime  Measure = "time"
)

// placements writes what is known of the placements of a region. Uncounted and untimed say that it has none.
func (e *encoder) placements(p *Placements, uncounted, untimed string) {
	if p == nil || uncounted != "" {
		return
	}
	counted := strings.Join(p.Counted, " ")
	e.text("placements", counted)
	if timed := strings.Join(p.Timed, " "); timed != counted && untimed == "" {
		e.text("timedIn", timed)
	}
}

// refusals writes why placements cannot measure a region.
func (e *encoder) refusals(p *Placements) {
	if p == nil {
		return
	}
	for _, r := range p.Refusals {
		e.begin("refusal")
		e.text("placement", r.Placement)
		e.text("of", string(r.Of))
		e.address("address", r.Address)
		e.text("reason", r.Reason)
		e.end("refusal")
	}
}

// xmlPlacements are the attributes and elements about placements.
type xmlPlacements struct {
	Counted   *string      `xml:"placements,attr"`
	Timed     *string      `xml:"timedIn,attr"`
	Uncounted string       `xml:"uncounted,attr"`
	Untimed   string       `xml:"untimed,attr"`
	Refusals  []xmlRefusal `xml:"refusal"`
}

type xmlRefusal struct {
	Placement string  `xml:"placement,attr"`
	Of        Measure `xml:"of,attr"`
	Address   number  `xml:"address,attr"`
	Reason    string  `xml:"reason,attr"`
}

// decode returns nil if the document says nothing about placements. Only a unit has reasons of its own.
func (x *xmlPlacements) decode(unit bool) *Placements {
	p := new(Placements)
	if unit {
		p.Uncounted, p.Untimed = x.Uncounted, x.Untimed
	}
	if x.Counted == nil {
		if p.Uncounted == "" {
			return nil
		}
		return p
	}
	p.Counted = strings.Fields(*x.Counted)
	switch {
	case x.Untimed != "":
	case x.Timed != nil:
		p.Timed = strings.Fields(*x.Timed)
	default:
		p.Timed = p.Counted
	}
	for _, r := range x.Refusals {
		p.Refusals = append(p.Refusals, Refusal{r.Placement, r.Of, uint64(r.Address), r.Reason})
	}
	return p
}
