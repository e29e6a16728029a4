package multiplex

import "fmt"

// Tests and logs show the values of match.go and table.go by the names of their constants.

var targetNames = [...]string{
	namesOut: "namesOut", relatedOut: "relatedOut", relatedOver: "relatedOver", namesOver: "namesOver",
	namesNothing: "namesNothing", namesOtherwise: "namesOtherwise",
}

func (t target) String() string { return targetNames[t] }

var mannerNames = [...]string{
	unknownManner: "unknownManner", noManner: "noManner", byText: "byText", byNumber: "byNumber",
	byNumberInCalls: "byNumberInCalls",
}

func (m manner) String() string { return mannerNames[m] }

var idFormNames = [...]string{textID: "textID", numberID: "numberID", numberOfCall: "numberOfCall"}

func (f idForm) String() string { return idFormNames[f] }

var certaintyNames = [...]string{
	certain: "certain", someGivenUp: "someGivenUp", oneAtATime: "oneAtATime", oneSpare: "oneSpare",
	ambiguous: "ambiguous", impossible: "impossible",
}

func (c certainty) String() string { return certaintyNames[c] }

var doubtNames = [...]string{
	answerUnnamed: "answerUnnamed", answerOfOne: "answerOfOne", requestGivenUp: "requestGivenUp",
	spareGone: "spareGone",
}

func (d doubt) String() string { return doubtNames[d] }

var contentNames = [...]string{
	aResult: "aResult", anEmptyResult: "anEmptyResult", anError: "anError", anUnreadError: "anUnreadError",
}

func (c content) String() string { return contentNames[c] }

var verdictNames = [...]string{
	toNamed: "toNamed", toOldest: "toOldest", toOnly: "toOnly", failAll: "failAll", endSession: "endSession",
	dropLate: "dropLate", dropNotice: "dropNotice", dropNothing: "dropNothing", dropUnclear: "dropUnclear",
	dropForeign: "dropForeign",
}

func (v verdict) String() string { return verdictNames[v] }

var stageNames = [...]string{
	unsent: "unsent", atServer: "atServer", progressing: "progressing", canceled: "canceled", withdrawn: "withdrawn",
}

func (s stage) String() string { return stageNames[s] }

var stepNames = [...]string{goesOut: "goesOut", progresses: "progresses", cancels: "cancels", bounces: "bounces"}

func (s step) String() string { return stepNames[s] }

// fmt calls no String method of a field that is not exported, so these do.

func (r response) String() string {
	return fmt.Sprintf("{%v %v isDueEmpty:%t}", r.target, r.content, r.isDueEmpty)
}

func (m matchState) String() string {
	return fmt.Sprintf("{isShared:%t %v %v notices:%d out:%d}", m.isShared, m.manner, m.certainty, m.notices, m.out)
}
