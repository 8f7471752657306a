"""What CloudFormation makes of a template: parameters put in, conditions decided, functions replaced by their values.

Only the functions that our templates use. A reference to a resource becomes its name in angle brackets, an attribute of
one `<Name.Attribute>`; a name that the template does not have raises KeyError, as it would fail a deployment.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cfnlint.decode import cfn_yaml

PSEUDO = {
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": "eu-central-1",
    "AWS::StackName": "stories",
    "AWS::URLSuffix": "amazonaws.com",
}
NOTHING = object()  # AWS::NoValue


def load_template(path: Path) -> dict[str, Any]:
    """Return the template with its functions in the long form: {"Ref": …}, {"Fn::Sub": …}."""
    template: dict[str, Any] = cfn_yaml.load(str(path))
    return template


class Stack:
    """A template with values for its parameters; parameters without a value take their defaults."""

    def __init__(self, template: Mapping[str, Any], **parameters: str) -> None:
        self._template = template
        declared = template["Parameters"]
        self.parameters = {name: str(one["Default"]) for name, one in declared.items() if "Default" in one}
        unknown = parameters.keys() - declared.keys()
        if unknown:
            raise KeyError(f"no parameters of the template: {sorted(unknown)}")
        self.parameters |= parameters
        self.resources: dict[str, Any] = {
            name: self.resolve(one) for name, one in template["Resources"].items() if self._exists(one)
        }
        self.outputs: dict[str, str] = {
            name: self.resolve(one["Value"]) for name, one in template["Outputs"].items() if self._exists(one)
        }

    def of_type(self, kind: str) -> dict[str, Any]:
        """Return the properties of all resources of a type, by name."""
        return {name: one["Properties"] for name, one in self.resources.items() if one["Type"] == kind}

    def __getitem__(self, name: str) -> Any:
        """Return the properties of a resource."""
        return self.resources[name]["Properties"]

    def refusals(self) -> list[str]:
        """Return what the template's rules say against these parameters."""
        return [
            assertion["AssertDescription"]
            for rule in self._template["Rules"].values()
            if "RuleCondition" not in rule or self._decide(rule["RuleCondition"])
            for assertion in rule["Assertions"]
            if not self._decide(assertion["Assert"])
        ]

    def resolve(self, value: Any) -> Any:
        """Return the value with all functions in it replaced."""
        if isinstance(value, Mapping):
            if len(value) == 1:
                ((function, argument),) = value.items()
                if function == "Ref" or str(function).startswith("Fn::"):
                    return self._call(function, argument)
            resolved = {str(key): self.resolve(one) for key, one in value.items()}
            return {key: one for key, one in resolved.items() if one is not NOTHING}
        if isinstance(value, list):
            return [one for one in map(self.resolve, value) if one is not NOTHING]
        return value

    def _call(self, function: str, argument: Any) -> Any:
        match function:
            case "Ref":
                return self._reference(str(argument))
            case "Fn::GetAtt":
                name, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
                return self._attribute(name, attribute)
            case "Fn::Sub":
                text, variables = argument if isinstance(argument, list) else (argument, {})
                return self._substitute(text, self.resolve(variables))
            case "Fn::If":
                condition, if_true, if_false = argument
                return self.resolve(if_true if self._decide(condition) else if_false)
            case "Fn::Join":
                separator, parts = argument
                return separator.join(self.resolve(parts))
            case "Fn::Split":
                separator, text = self.resolve(argument)
                return text.split(separator)
            case "Fn::FindInMap":
                first, second, third = self.resolve(argument)
                return self._template["Mappings"][first][second][third]
        raise NotImplementedError(function)

    def _reference(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return NOTHING
        if name in PSEUDO:
            return PSEUDO[name]
        if name in self.parameters:
            is_list = self._template["Parameters"][name]["Type"] == "CommaDelimitedList"
            return self.parameters[name].split(",") if is_list else self.parameters[name]
        logical_id = name.removesuffix(".Alias").removesuffix(".Stage")  # SAM's own
        if not self._exists(self._template["Resources"][logical_id]):
            raise KeyError(f"{name}: its condition keeps it out of the stack")
        return f"<{name}>"

    def _attribute(self, name: str, attribute: str) -> str:
        self._template["Resources"][name]
        return f"<{name}.{attribute}>"

    def _substitute(self, text: str, variables: Mapping[str, Any]) -> str:
        def value(found: re.Match[str]) -> str:
            name = found[1]
            if name in variables:
                return str(variables[name])
            if "." in name:
                return self._attribute(*name.split(".", 1))
            return str(self._reference(name))

        return re.sub(r"\$\{([^}]+)\}", value, text)

    def _exists(self, resource: Mapping[str, Any]) -> bool:
        return "Condition" not in resource or self._decide(resource["Condition"])

    def _decide(self, condition: Any) -> bool:
        if isinstance(condition, str):
            return self._decide(self._template["Conditions"][condition])
        ((function, argument),) = condition.items()
        if function == "Fn::Not":
            return not self._decide(argument[0])
        if function in ("Fn::And", "Fn::Or"):
            decisions = [self._decide(one) for one in argument]
            return all(decisions) if function == "Fn::And" else any(decisions)
        if function == "Fn::Equals":
            left, right = self.resolve(argument)
            return str(left) == str(right)
        raise NotImplementedError(function)
