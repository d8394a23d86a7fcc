package lint

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
)

// The objects of SARIF 2.1.0 that are written (OASIS Static Analysis Results Interchange Format, §3).
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID    string    `json:"id"`
		Short sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID     string          `json:"ruleId"`
		RuleIndex  int             `json:"ruleIndex"`
		Level      string          `json:"level"`
		Message    sarifText       `json:"message"`
		Locations  []sarifLocation `json:"locations"`
		Properties sarifProperties `json:"properties"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Address  sarifAddress  `json:"address"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifAddress struct {
		Absolute int64  `json:"absoluteAddress"`
		Kind     string `json:"kind"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
		Kind string `json:"kind"`
	}
	sarifProperties struct {
		Says      string `json:"says"`
		Truth     string `json:"truth"`
		Directive string `json:"directive,omitempty"`
	}
)

// WriteSARIF writes findings about the file at path as one SARIF 2.1.0 log. Addresses are link addresses. name makes a
// symbol readable; nil leaves it as it is.
func WriteSARIF(w io.Writer, path, version string, findings []Finding, name func(string) string) error {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "callreel", Version: version}}, Results: []sarifResult{}}
	index := map[Kind]int{}
	for k, kind := range Kinds() {
		index[kind.Kind] = k
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{string(kind.Kind), sarifText{kind.Text}})
	}
	uri := (&url.URL{Path: path}).String()
	for k := range findings {
		f := &findings[k]
		r := sarifResult{
			RuleID: string(f.Kind), RuleIndex: index[f.Kind], Level: "error", Message: sarifText{f.message()},
			Properties: sarifProperties{f.Says, f.Truth, f.Directive},
			Locations:  []sarifLocation{{Physical: sarifPhysical{sarifArtifact{uri}, sarifAddress{int64(f.Address), "instruction"}}}},
		}
		if f.Function != "" {
			function := f.Function
			if name != nil {
				function = name(function)
			}
			r.Locations[0].Logical = []sarifLogical{{function, "function"}}
		}
		run.Results = append(run.Results, r)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

// message says a finding in a sentence.
func (f *Finding) message() string {
	text := fmt.Sprintf("%#x: the call frame information says %s, but %s.", f.Address, f.Says, f.Truth)
	if f.Directive != "" {
		text += " " + f.Directive + " would say so."
	}
	return text
}
