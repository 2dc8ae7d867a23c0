// A plugin for ROOST Coop: the verdict of `memantics serve` as a signal for rules and review queues.
//
// The interface below is declared from Coop's published integration example (version 2.0.1). In an
// installation of Coop, import the types from `@roostorg/types` instead.

export type OutputType = { scalarType: "NUMBER" };
export type SignalValue =
  | { type: "STRING"; value: string }
  | { type: "IMAGE"; value: { url: string } };
export type SignalInput = { orgId: string; value: SignalValue };
export type SignalResult = { outputType: OutputType; score: number };
export type SignalContext = {
  integrationId: string;
  getCredential(orgId: string): Promise<Record<string, unknown> | null | undefined>;
};

const INTEGRATION = "MEMANTICS";
const SIGNAL = "MEMANTICS_HARM";
const outputType: OutputType = { scalarType: "NUMBER" };

const section = (id: string, title: string, label: string, value: string) => ({
  id,
  title,
  fields: [{ label, value }],
});

export const modelCard = {
  modelName: "The detector of your Memantics service",
  version: "0.3.0",
  releaseDate: "November 2026",
  sections: [
    section("trainingData", "Training Data", "Overview", "See the model card beside the detector file."),
    section("policyAndTaxonomy", "Policy and Taxonomy", "Scope", "Harmful memes, as labelled in the training data."),
    section("annotationMethodology", "Annotation Methodology", "Method", "See the model card."),
    section("performanceBenchmarks", "Performance and Benchmarks", "Benchmarks", "Run memantics detector eval."),
    section(
      "biasAndLimitations",
      "Bias and Limitations",
      "Limitations",
      "A text that cannot be scored is an error of the signal, never a low score.",
    ),
    section("implementationGuidance", "Implementation Guidance", "Signals", `${SIGNAL}: probability of harm, 0 to 1.`),
    section("relevantLinks", "Relevant Links", "Guide", "docs/how-to/serve.md"),
  ],
};

export const manifest = {
  id: INTEGRATION,
  name: "Memantics",
  version: "0.3.0",
  description: "Probability that a meme is harmful, from your own Memantics service.",
  docsUrl: "docs/integrations.md",
  requiresConfig: true,
  configurationFields: [
    { key: "url", label: "URL of the service", required: true, inputType: "text", placeholder: "http://127.0.0.1:8080" },
    { key: "token", label: "Token with the scope moderate", required: false, inputType: "password" },
  ],
  signalTypeIds: [SIGNAL],
  modelCard,
};

type Verdict = { status: string; probability: number | null; reason: string };

async function moderate(url: string, token: string, value: SignalValue): Promise<Verdict> {
  const part =
    value.type === "STRING"
      ? { type: "text", text: value.value }
      : { type: "image_url", image_url: { url: value.value.url } };
  const answer = await fetch(`${url.replace(/\/+$/, "")}/v1/moderations`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token ? { authorization: `Bearer ${token}` } : {}),
    },
    body: JSON.stringify({ input: [part] }),
  });
  if (!answer.ok) throw new Error(`Memantics answered with status ${answer.status}`);
  const body = (await answer.json()) as { results: { verdicts: Verdict[] }[] };
  const verdict = body.results[0]?.verdicts[0];
  if (verdict === undefined) throw new Error("Memantics answered without a verdict");
  return verdict;
}

export function createSignals(context: SignalContext) {
  const signal = {
    id: { type: SIGNAL },
    displayName: "Harmful meme",
    description: "Probability of harm of a text, or of the text in an image.",
    docsUrl: null,
    recommendedThresholds: null,
    supportedLanguages: "ALL" as const,
    pricingStructure: { type: "FREE" as const },
    eligibleInputs: ["STRING", "IMAGE"],
    outputType,
    getCost: () => 0,
    needsMatchingValues: false,
    eligibleSubcategories: [],
    needsActionPenalties: false,
    integration: context.integrationId,
    allowedInAutomatedRules: true,
    async run(input: SignalInput): Promise<SignalResult> {
      const config = (await context.getCredential(input.orgId)) ?? {};
      const verdict = await moderate(String(config.url ?? ""), String(config.token ?? ""), input.value);
      if (verdict.probability === null) throw new Error(`not scored: ${verdict.reason}`);
      return { outputType, score: verdict.probability };
    },
    async getDisabledInfo(orgId: string) {
      const config = await context.getCredential(orgId);
      return config?.url
        ? { disabled: false as const }
        : { disabled: true as const, disabledMessage: "Set the URL of your Memantics service." };
    },
  };
  return [{ signalTypeId: SIGNAL, signal }];
}

export default { manifest, createSignals };
