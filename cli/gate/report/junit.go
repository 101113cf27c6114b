package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"

	"mirador/cli/gate/verdict"
)

// The elements of a JUnit document, as the schema of pytest has them.
type (
	junitSuites struct {
		XMLName xml.Name   `xml:"testsuites"`
		Suite   junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitMessage `xml:"failure"`
		Skipped *junitMessage `xml:"skipped"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"` // the line in the source: a test case has no attribute for it
	}
)

// WriteJUnit writes the verdicts as test results: a limit is a test case, and an inconclusive one
// is skipped, with the reason.
func (r *Report) WriteJUnit(w io.Writer) error {
	suite := junitSuite{Name: "mirador gate " + r.Gate, Tests: len(r.Results), Time: strconv.FormatFloat(r.Seconds, 'f', 3, 64)}
	for i := range r.Results {
		one := &r.Results[i]
		c := junitCase{Class: one.Kind, Name: one.Name + ", " + one.Limit, Time: "0"}
		at := ""
		if one.Line > 0 {
			at = fmt.Sprintf("%s:%d", one.File, one.Line)
		}
		switch one.Outcome {
		case verdict.Failed:
			suite.Failures++
			c.Failure = &junitMessage{one.Reason, at}
		case verdict.Inconclusive:
			suite.Skipped++
			c.Skipped = &junitMessage{"inconclusive: " + one.Reason, at}
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	return e.Encode(junitSuites{Suite: suite})
}
