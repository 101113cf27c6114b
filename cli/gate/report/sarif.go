package report

import (
	"encoding/json"
	"io"

	"mirador/cli/gate/verdict"
)

// The parts of SARIF 2.1.0 that verdicts need.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID string `json:"id"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Kind      string          `json:"kind"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region struct {
				Line int `json:"startLine"`
			} `json:"region"`
		} `json:"physicalLocation"`
	}
)

// sarifKinds are the kinds and levels of results: only a kind of fail has a level (SARIF 3.27.10).
var sarifKinds = map[verdict.Outcome][2]string{
	verdict.Passed: {"pass", "none"}, verdict.Failed: {"fail", "error"}, verdict.Inconclusive: {"review", "none"},
}

// WriteSARIF writes the verdicts as static analysis results, at the lines of the source.
func (r *Report) WriteSARIF(w io.Writer, within string) error {
	run := sarifRun{Results: []sarifResult{}}
	run.Tool.Driver.Name = "mirador gate"
	for _, kind := range []string{"exact", "absolute", "relative"} {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{kind})
	}
	for i := range r.Results {
		one := &r.Results[i]
		kind := sarifKinds[one.Outcome]
		text := one.Name + ", " + one.Limit + ": " + string(one.Outcome)
		if one.Reason != "" {
			text += ": " + one.Reason
		}
		result := sarifResult{RuleID: one.Kind, Kind: kind[0], Level: kind[1], Message: sarifText{text}}
		if one.Line > 0 {
			var at sarifLocation
			at.Physical.Artifact.URI, at.Physical.Region.Line = relative(one.File, within), one.Line
			result.Locations = []sarifLocation{at}
		}
		run.Results = append(run.Results, result)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}
