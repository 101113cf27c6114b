package translate

import "mirador/mir"

type Reading struct {
	ProbeID string
	Plan    *Plan
	Values  []Value
}

func Document(rs []Reading) *mir.Measurement { return &mir.Measurement{} }
