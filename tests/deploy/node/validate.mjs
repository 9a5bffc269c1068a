// Reads objects as JSON from stdin and writes, as a JSON list, why each custom resource is invalid.
import { readFileSync } from "node:fs";
import { PodMonitor, PrometheusRule } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1";
import { ScaledObject, TriggerAuthentication } from "@kubernetes-models/keda/keda.sh/v1alpha1";

const models = { PodMonitor, PrometheusRule, ScaledObject, TriggerAuthentication };
const faults = [];
for (const object of JSON.parse(readFileSync(0, "utf8"))) {
  const where = `${object.kind} ${object.metadata.name}`;
  const model = models[object.kind];
  if (model === undefined) {
    faults.push(`${where}: no model of this kind`);
    continue;
  }
  try {
    new model(object).validate();
  } catch (error) {
    faults.push(`${where}: ${error.message}`);
  }
}
process.stdout.write(JSON.stringify(faults));
