package translate

import (
	"encoding/json"

	"mirador/mir"
	"mirador/omis"
)

// savedValue is the JSON form of a Value.
type savedValue struct {
	Metric  int            `json:"metric"`
	Site    string         `json:"site,omitempty"`
	Node    string         `json:"node,omitempty"`
	Process omis.Token     `json:"process,omitempty"`
	Thread  omis.Token     `json:"thread,omitempty"`
	Level   mir.EntityKind `json:"level,omitempty"`
	Within  omis.Token     `json:"within,omitempty"`
	Stats   Stats          `json:"exact"`
}

// MarshalJSON writes a value for the journal.
func (v Value) MarshalJSON() ([]byte, error) {
	i := v.Instance
	return json.Marshal(savedValue{v.Metric, i.Site, i.Node, i.Process, i.Thread, i.level, i.within, v.Stats})
}

// UnmarshalJSON reads the output of MarshalJSON.
func (v *Value) UnmarshalJSON(text []byte) error {
	var saved savedValue
	if err := json.Unmarshal(text, &saved); err != nil {
		return err
	}
	*v = Value{
		Metric:   saved.Metric,
		Instance: Instance{Site: saved.Site, Node: saved.Node, Process: saved.Process, Thread: saved.Thread, level: saved.Level, within: saved.Within},
		Stats:    saved.Stats,
	}
	return nil
}
