package translate

import (
	"encoding/json"

	"mirador/mir"
	"mirador/omis"
)

// savedValue is the JSON form of a Value that is measured without a region.
type savedValue struct {
	Metric  int            `json:"metric"`
	Node    string         `json:"node,omitempty"`
	Process omis.Token     `json:"process,omitempty"`
	Thread  omis.Token     `json:"thread,omitempty"`
	Level   mir.EntityKind `json:"level,omitempty"`
	Within  omis.Token     `json:"within,omitempty"`
	Stats   savedStats     `json:"stats"`
}

type savedStats struct {
	N       int64   `json:"n"`
	Last    float64 `json:"last"`
	Sum     float64 `json:"sum"`
	Min     float64 `json:"min"`
	Max     float64 `json:"max"`
	Mean    float64 `json:"mean"`
	Squares float64 `json:"squares"`
}

// MarshalJSON omits what only values of regions have: samples of executions, and histograms.
func (v Value) MarshalJSON() ([]byte, error) {
	i, s := v.Instance, v.Stats
	return json.Marshal(savedValue{
		v.Metric, i.Node, i.Process, i.Thread, i.level, i.within,
		savedStats{s.N, s.Last, s.Sum, s.Min, s.Max, s.Mean, s.Squares},
	})
}

// UnmarshalJSON reads the output of MarshalJSON.
func (v *Value) UnmarshalJSON(text []byte) error {
	var saved savedValue
	if err := json.Unmarshal(text, &saved); err != nil {
		return err
	}
	s := saved.Stats
	*v = Value{
		Metric:   saved.Metric,
		Instance: Instance{Node: saved.Node, Process: saved.Process, Thread: saved.Thread, level: saved.Level, within: saved.Within},
		Stats:    Stats{N: s.N, Last: s.Last, Sum: s.Sum, Min: s.Min, Max: s.Max, Mean: s.Mean, Squares: s.Squares},
	}
	return nil
}
