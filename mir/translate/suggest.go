package translate

import (
	"cmp"
	"slices"
	"strings"

	"mirador/sir"
)

// didYouMean suggests up to three units with a similar id or name. Among equally similar
// units, those of the main module come first.
func didYouMean(name string, t *Targets) string {
	type candidate struct {
		text string
		far  int
	}
	var near []candidate
	units := t.units()
	for _, c := range units {
		if far := unlike(name, c.unit); far <= 1+len(name)/4 {
			near = append(near, candidate{c.unit.ID + " (" + c.unit.Name + ")", far})
		}
	}
	if len(units) == 0 {
		return ": the structure of no program of the application could be read"
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return cmp.Compare(a.far, b.far) })
	var texts []string
	for _, c := range near {
		if !slices.Contains(texts, c.text) {
			texts = append(texts, c.text)
		}
	}
	if len(texts) == 0 {
		return "; a sirreq lists the units and their ids"
	}
	return "; did you mean " + strings.Join(texts[:min(3, len(texts))], " or ") + "?"
}

// unlike returns the distance of a name from a unit. A prefix of the unit's name has distance
// 1, because people abbreviate names.
func unlike(name string, u *sir.Unit) int {
	far := min(distance(name, u.ID), distance(name, u.Name))
	if len(name) > 2 && strings.HasPrefix(u.Name, name) {
		far = min(far, 1)
	}
	return far
}

// distance returns the number of bytes to insert, delete or replace (Levenshtein). It does not
// compare words of very different lengths, because a program has many units.
func distance(a, b string) int {
	const tooFar = 1 << 16
	if len(a) > 2*len(b)+2 || len(b) > 2*len(a)+2 {
		return tooFar
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
