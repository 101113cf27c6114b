package cli

import (
	"slices"
	"strings"

	gateway "mirador/http"
	"mirador/mir/translate"
	"mirador/omis/node"
)

// Catalog lists the metrics, with the reasons why this machine cannot measure some of them.
func (b *backend) Catalog() []gateway.Metric {
	list := translate.Catalog()
	for i := range list {
		list[i] = list[i].With(b.lacks)
	}
	return list
}

// lacks returns the reason why this machine cannot measure a metric, "" if it can.
func (b *backend) lacks(m translate.Metric) string {
	switch {
	case m.Event() != "":
		if err := b.monitor.Linux.Capabilities().Meters.CheckMeter(m.Event()); err != nil {
			return err.Error()
		}
	case m.OnScheduling():
		if err := b.monitor.Linux.LacksForEvent(node.EventBlocked); err != nil {
			return err.Error()
		}
	}
	return ""
}

// matching returns the metrics whose name, meaning or measurement contains a word.
func matching(rows []gateway.Metric, word string) (found []gateway.Metric) {
	word = strings.ToLower(word)
	for _, m := range rows {
		if strings.Contains(strings.ToLower(m.Space+":"+m.Name+" "+m.Doc+" "+m.Measured), word) {
			found = append(found, m)
		}
	}
	return found
}

// available returns the metrics that can be measured here.
func available(rows []gateway.Metric) []gateway.Metric {
	return slices.DeleteFunc(rows, func(m gateway.Metric) bool { return m.Unavailable != "" })
}

// what returns the meaning of a metric for the table, after the reason why the metric cannot be measured,
// if there is one.
func what(m *gateway.Metric) string {
	if m.Unavailable != "" {
		return "(cannot be measured: " + m.Unavailable + ") " + m.Doc
	}
	return m.Doc
}
